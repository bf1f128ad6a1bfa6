"""Members by three libraries in one group: they understand each other's subscriptions and assignments."""

from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.groups.member import PYTHON
from tests.harness.node import Node


def test_three_libraries_share_one_topic_whoever_of_them_leads(node: Node, ten: str) -> None:
    """Each of them has to lead once: the leader assigns, for all of them."""
    with Gathering(node.bootstrap, ten, f"mixed-{ten}") as group, Feeder(node.bootstrap, ten, PARTITIONS) as feeder:
        for client in sorted(PYTHON):
            group.start(client, 1, assignor="range", session_ms=3000)
            group.wait_shared(among=len(group.running))
        for _ in range(2):
            group.running[0].leave()  # The oldest leads.
            group.wait_shared(among=len(group.running))
        for client in sorted(PYTHON):
            group.start(client, 3, assignor="range", session_ms=3000)
        group.wait_spread(*[1] * 10)
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)


def test_either_protocol_in_one_group(node: Node, ten: str) -> None:
    """A group moves to the newer protocol member by member, and back, and nothing is lost on the way."""
    with Gathering(node.bootstrap, ten, f"moving-{ten}") as group, Feeder(node.bootstrap, ten, PARTITIONS) as feeder:
        old = group.start("confluent-kafka", 2, session_ms=3000)
        group.wait_shared(among=2)
        new = group.start("confluent-kafka", 2, protocol="consumer")
        group.wait_joined(4)
        group.wait_spread(2, 2, 3, 3)
        for member in old:
            member.leave()
        group.wait_spread(5, 5)
        group.start("kafka-python", 1, session_ms=3000)
        group.wait_joined(3)
        group.wait_shared(among=3)
        for member in new:
            member.leave()
        group.wait_spread(10)
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)
