"""Where partitions begin: only as far on as somebody asked for, or as their retention allows.

I20. A replica's beginning moves because an operator deleted records, because its own retention took whole segments, or
because its leader begins there. What is gone that way is nobody's loss; everything else is.
"""

from collections.abc import Mapping

from klamm.ids import Offset
from klamm.partition.partition import Partition
from klamm.sim.checkers.replication import NOTHING, Committed
from klamm.sim.clients.history import History, Key
from klamm.sim.machine import WALL_MS, Machine
from klamm.sim.promise import broken
from klamm.sim.topics import TopicPlan


class BeginningChecker:
    def __init__(
        self,
        topics: Mapping[str, TopicPlan],
        history: History,
        committed: Mapping[Key, Committed],
        starts: dict[Key, Offset],
    ) -> None:
        self._topics = topics
        self._history = history
        self._committed = committed
        self._starts = starts
        """The farthest beginning that any replica had, and had by right."""
        self.asked: dict[Key, Offset] = {}
        """Up to where an operator wanted records to be gone."""
        self.moved = 0
        """How often retention took something."""

    def wants_gone(self, key: Key, offset: Offset) -> None:
        self.asked[key] = max(offset, self.asked.get(key, 0))

    def begins(self, machine: Machine, partition: Partition) -> None:
        """Elsewhere than it did."""
        start = partition.log.start_offset
        key = (partition.topic_id, partition.topic_partition.partition)
        # Where others begin, or did, its leader may have told it to begin.
        if start > self._starts.get(key, 0):
            self._judge(machine, partition, key, start)
            self._starts[key] = start

    def _judge(self, machine: Machine, partition: Partition, key: Key, start: Offset) -> None:
        if start > self._committed.get(key, NOTHING).offset:
            broken("I20", f"{machine.name}'s {partition} begins beyond what is committed")
        if start <= self.asked.get(key, 0):
            return
        topic = self._topics[partition.topic_partition.topic]
        kept_bytes, kept_ms = topic.number("retention.bytes"), topic.number("retention.ms")
        self.moved += 1
        if kept_bytes >= 0:
            if partition.log.size_bytes < kept_bytes:
                broken("I20", f"{machine.name}'s {partition} keeps {partition.log.size_bytes} bytes of {kept_bytes}")
        elif kept_ms >= 0:
            self._are_old(machine, partition, key, start, kept_ms)
        else:
            broken("I20", f"{machine.name}'s {partition} begins at {start}; asked for was {self.asked.get(key, 0)}")

    def _are_old(self, machine: Machine, partition: Partition, key: Key, start: Offset, kept_ms: int) -> None:
        """By the clock of this machine, which may be wrong."""
        youngest_ms = machine.now.wall_ms - kept_ms
        seen = self._history.seen.get(key, {})
        for offset in range(self._starts.get(key, 0), start):
            value = seen.get(offset)
            if value is not None and WALL_MS + self._history.written[value].made_ms >= youngest_ms:
                broken("I20", f"{machine.name}'s {partition} has no {value!r} at {offset} any more, which was young")
