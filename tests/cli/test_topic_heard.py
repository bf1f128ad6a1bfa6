"""What a broker has not heard of yet is asked again."""

from collections.abc import Sequence

import pytest

from klamm.cli import topic_heard
from klamm.cli.group_asking import Cluster
from klamm.cli.topic_heard import partitions_once
from klamm.ids import TopicPartition
from klamm.local.view import ClusterSeen, PartitionSeen

PLACE = TopicPartition("orders", 0)


class Slow(Cluster):
    """Its broker hears of the new leader, 2, when it is asked for the third time."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked = 0

    def seen(self, topics: Sequence[str] | None = None) -> ClusterSeen:
        self.asked += 1
        leader = 2 if self.asked > 2 else 1
        return ClusterSeen("some", 0, (), (PartitionSeen("orders", 0, leader, (2, 1), (2, 1)),))


def test_a_change_is_waited_for() -> None:
    cluster = Slow()
    assert partitions_once(cluster, ["orders"], lambda now: now[PLACE].leader == 2)[PLACE].leader == 2
    assert cluster.asked == 3


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_heard, "HEARD_SECONDS", 0.0)
    assert partitions_once(Slow(), ["orders"], lambda now: False)[PLACE].leader == 1
