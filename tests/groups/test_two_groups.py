"""S24: two groups read independently of each other, each of them everything, each from where it was."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import pytest

from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.groups.member import PYTHON
from tests.harness.groups import committed
from tests.harness.node import Node
from tests.harness.raw import Raw


@pytest.mark.parametrize("client", sorted(PYTHON))
def test_S24_two_groups_read_everything_and_come_back_to_where_they_were(node: Node, ten: str, client: str) -> None:
    with (
        Feeder(node.bootstrap, ten, PARTITIONS) as feeder,
        Gathering(node.bootstrap, ten, f"one-{ten}") as one,
        Gathering(node.bootstrap, ten, f"two-{ten}") as two,
    ):
        one.start(client, 2)
        two.start("confluent-kafka", 1)
        one.wait_shared(among=2)
        two.wait_shared(among=1)
        one.wait_handled(dict.fromkeys(range(PARTITIONS), 20))
        for member in one.running:
            member.leave()
        stopped_at = {partition: one.committed(partition) for partition in range(PARTITIONS)}
        two.wait_handled({partition: end + 10 for partition, end in stopped_at.items()})
        with Raw(node.port) as raw:
            found = {partition: committed(raw, one.group, ten, partition) for partition in range(PARTITIONS)}
        assert found == stopped_at, "what the other group reads is not this one's"
        one.start(client, 1)
        ends = feeder.stop()
        one.wait_handled(ends)
        two.wait_handled(ends)
        assert one.reckoned(ends).twice == 0, "all had left cleanly"
        assert two.reckoned(ends).twice == 0
        with Raw(node.port) as raw:
            for group in (one.group, two.group):
                assert {p: committed(raw, group, ten, p) for p in range(PARTITIONS)} == ends
