"""S24 and S25 with Kafka's own consumer, alone and among members by other libraries."""
# ruff: noqa: N802  (tests are named after the rows of the system)

from collections.abc import Mapping

import pytest

from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.groups.member import Command
from tests.harness.node import Node

Commands = Mapping[str, Command]
KINDS = [("classic", "range"), ("classic", "cooperative-sticky"), ("consumer", "-")]


@pytest.mark.parametrize(("protocol", "assignor"), KINDS, ids=["-".join(kind) for kind in KINDS])
def test_S25_one_three_ten_and_thirteen_members_of_ten_partitions(
    node: Node, ten: str, commands: Commands, protocol: str, assignor: str
) -> None:
    options = {"protocol": protocol, "assignor": assignor, "session_ms": 3000}
    with (
        Gathering(node.bootstrap, ten, f"group-of-{ten}", commands=commands) as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
    ):
        group.start("java", 1, **options)
        group.wait_spread(10)
        group.start("java", 2, **options)
        group.wait_spread(3, 3, 4)
        group.start("java", 7, **options)
        group.wait_spread(*[1] * 10, within_seconds=60)
        group.start("java", 3, **options)
        group.wait_joined(13, within_seconds=60)
        group.wait_spread(*[0] * 3, *[1] * 10)
        busy = [member for member in group.running if member.owned]
        busy[0].leave()
        busy[1].kill9()
        group.wait_spread(0, *[1] * 10)
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_is_killed_or_sleeps_is_replaced(node: Node, ten: str, commands: Commands, protocol: str) -> None:
    options = {"protocol": protocol, "session_ms": 1500, "commit_every_ms": 500}
    with (
        Gathering(node.bootstrap, ten, f"group-of-{ten}", commands=commands) as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
    ):
        killed, sleeping, *_ = group.start("java", 4, **options)
        group.wait_shared(among=4)
        group.wait_handled(dict.fromkeys(range(PARTITIONS), 5))
        killed.kill9()
        group.wait_shared(among=3)
        sleeping.pause()
        group.wait_joined(2)
        sleeping.resume()
        group.wait_joined(3)
        group.wait_shared(among=3)
        group.wait_handled(feeder.stop())
        a_second = 1 / 0.02 * PARTITIONS
        assert group.reckoned(feeder.ends).twice < 2 * a_second


def test_four_libraries_share_one_topic_whoever_of_them_leads(node: Node, ten: str, commands: Commands) -> None:
    """The oldest leads a classic group: each of them assigns for all, and each understands the others."""
    with (
        Gathering(node.bootstrap, ten, f"mixed-{ten}", commands=commands) as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
    ):
        for client in sorted(commands):
            group.start(client, 1, session_ms=3000)
            group.wait_shared(among=len(group.running))
        for _ in commands:
            group.running[0].leave()
            group.start("java", 1, session_ms=3000)
            group.wait_joined(4)
            group.wait_shared(among=4)
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)


def test_cooperative_members_by_three_libraries(node: Node, ten: str, commands: Commands) -> None:
    """Whoever keeps a partition is not interrupted: nobody lets go of all of them."""
    with (
        Gathering(node.bootstrap, ten, f"sticky-{ten}", commands=commands) as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
    ):
        (first,) = group.start("java", 1, session_ms=3000, assignor="cooperative-sticky")
        group.wait_shared(among=1)
        for client in ("confluent-kafka", "kafka-python", "java"):
            group.start(client, 1, session_ms=3000, assignor="cooperative-sticky")
            group.wait_joined(len(group.running))
            group.wait_shared(among=len(group.running))
        assert all(
            len(told.partitions) < len(first.has_told("assigned")[0].partitions) for told in first.has_told("revoked")
        )
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)


def test_librdkafka_and_java_in_a_group_of_the_newer_protocol(node: Node, ten: str, commands: Commands) -> None:
    """And classic members by three libraries among them, while the group moves from one protocol to the other."""
    with (
        Gathering(node.bootstrap, ten, f"newer-{ten}", commands=commands) as group,
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
    ):
        classic = [
            *group.start("java", 1, session_ms=3000),
            *group.start("kafka-python", 1, session_ms=3000),
            *group.start("aiokafka", 1, session_ms=3000),
        ]
        group.wait_shared(among=3)
        group.start("java", 2, protocol="consumer")
        group.start("confluent-kafka", 2, protocol="consumer")
        group.wait_joined(7)
        group.wait_shared(among=7)
        for member in classic:
            member.leave()
        group.wait_spread(2, 2, 3, 3)
        group.wait_handled(feeder.stop())
        group.reckoned(feeder.ends)
