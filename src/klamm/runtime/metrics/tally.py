"""What is added up over all that a node has, some of it at a time, before anything is written."""

from collections.abc import Iterator
from typing import TypeVar

from klamm.broker.broker import Broker
from klamm.ids import BrokerId
from klamm.partition.partition import Partition
from klamm.partition.traffic import Traffic

T = TypeVar("T")

SLICE = 200
"""So many are looked at in one go, or written: a quarter of a millisecond, about."""


class Tally:
    def __init__(self) -> None:
        self.leaders = 0
        self.under_replicated = 0
        self.under_min_isr = 0
        self.at_min_isr = 0
        self.offline = 0
        self.producers = 0
        self.producers_forgotten = 0
        self.followed_by: dict[BrokerId, int] = {}
        """By follower: how far it is behind where it is furthest behind, in records."""
        self.traffic = Traffic()
        """Of all topics, those that are deleted included."""

    def add_up(self, broker: Broker, replicas: list[Partition]) -> Iterator[None]:
        """Stops after every slice."""
        for some in _sliced(replicas):
            for partition in some:
                self._add_replica(partition)
            yield
        self.traffic.add(broker.partitions.traffic_before)
        for more in _sliced(list(broker.partitions.traffic.values())):
            for traffic in more:
                self.traffic.add(traffic)
            yield

    def _add_replica(self, partition: Partition) -> None:
        self.offline += partition.failure is not None
        self.producers += len(partition.log.producers)
        self.producers_forgotten += partition.log.producers.forgotten
        if partition.leading is None or partition.deleted:
            return
        in_sync = len(partition.in_sync)
        self.leaders += 1
        self.under_replicated += in_sync < len(partition.replicas)
        self.under_min_isr += in_sync < partition.min_in_sync
        self.at_min_isr += in_sync == partition.min_in_sync
        end = partition.log.end_offset
        for follower in partition.leading.followers.values():
            behind = end - max(follower.end_offset, partition.log.start_offset)
            self.followed_by[follower.broker_id] = max(behind, self.followed_by.get(follower.broker_id, 0))


def _sliced(things: list[T]) -> Iterator[list[T]]:
    return (things[first : first + SLICE] for first in range(0, len(things), SLICE))
