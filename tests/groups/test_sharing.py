"""S24 and S25: each partition is read by one member of a group, however many there are of either."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import pytest

from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.harness.node import Node

KINDS = [
    ("confluent-kafka", "classic", "range"),
    ("confluent-kafka", "classic", "cooperative-sticky"),
    ("confluent-kafka", "consumer", "-"),
    ("kafka-python", "classic", "range"),
    ("kafka-python", "classic", "cooperative-sticky"),
    ("aiokafka", "classic", "roundrobin"),
]


@pytest.mark.parametrize(("client", "protocol", "assignor"), KINDS, ids=["-".join(kind) for kind in KINDS])
def test_S25_one_three_ten_and_thirteen_members_of_ten_partitions(
    node: Node, ten: str, client: str, protocol: str, assignor: str
) -> None:
    """One reads all, three some each, ten one each, of thirteen three are idle; who leaves or dies is replaced."""
    options = {"protocol": protocol, "assignor": assignor, "session_ms": 3000}
    with Gathering(node.bootstrap, ten, f"group-of-{ten}") as group, Feeder(node.bootstrap, ten, PARTITIONS) as feeder:
        group.start(client, 1, **options)
        group.wait_spread(10)
        group.start(client, 2, **options)
        group.wait_spread(3, 3, 4)
        group.start(client, 7, **options)
        group.wait_spread(*[1] * 10)
        group.start(client, 3, **options)
        group.wait_joined(13)
        group.wait_spread(*[0] * 3, *[1] * 10)
        busy = [member for member in group.running if member.owned]
        busy[0].leave()
        busy[1].kill9()
        group.wait_spread(0, *[1] * 10)
        group.wait_handled(feeder.stop())
        found = group.reckoned(feeder.ends)
        print(f"{client} {protocol} {assignor}: {found}")
        assert found.records == sum(feeder.ends.values()) + found.twice
