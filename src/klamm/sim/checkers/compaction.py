"""A compacted topic: of every key the last record is there for everybody, whatever else is gone.

F34. Replicas compact by themselves, so the same batch may look different on each of them. A record never does: what
stands at an offset, in an epoch, has the same key and the same value everywhere. And a record may be missing only where
a later one of its key was committed.
"""

from bisect import bisect_right, insort
from collections.abc import Container, Iterator, Mapping

from klamm.ids import Epoch, Offset
from klamm.partition.partition import Partition
from klamm.records.batch import batches
from klamm.records.record import records_of
from klamm.sim.checkers.replication import Committed
from klamm.sim.clients.history import History, Key
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

AT_ONCE_BYTES = 1 << 20


class CompactionChecker:
    def __init__(self, history: History, committed: Mapping[Key, Committed], may_lose: Container[Key]) -> None:
        self._history = history
        self._committed = committed
        self._may_lose = may_lose
        self._records: dict[tuple[Key, Offset, Epoch], tuple[bytes | None, bytes | None]] = {}
        """What any replica ever held."""
        self._offsets: dict[Key, dict[bytes | None, list[Offset]]] = {}
        """Where records of each key stood on any replica, growing."""
        self.skipped = 0
        """How many records readers did not get because they had been compacted."""

    def holds(self, key: Key) -> bool:
        """Whether this partition is compacted."""
        return key in self._offsets

    def look(self, machine: Machine, partition: Partition, epoch: Epoch, raw: bytes) -> None:
        """One batch of a replica."""
        key = _key(partition)
        places = self._offsets.setdefault(key, {})
        for record in records_of(raw):
            held = (record.key, record.value)
            known = self._records.setdefault((key, record.offset, epoch), held)
            if known is held:
                insort(places.setdefault(record.key, []), record.offset)
            elif known != held:
                broken("I16", f"{machine.name}'s {partition} has {held} at {record.offset}, another one has {known}")

    def passed(self, reader: str, key: Key, wanted: Offset, given: Offset) -> None:
        """A reader was given nothing between these two."""
        for offset in range(wanted, given):
            value = self._known_at(key, offset)
            if value is not None:
                self.skipped += 1
                self._is_superseded(reader, key, offset, value)

    def at_end(self, machine: Machine) -> None:
        """Every replica has every record that was promised, or a later one of its key."""
        for partition in machine.broker.partitions:
            key = _key(partition)
            if not self.holds(key):
                continue
            held: set[Offset] = set()
            for epoch, raw in batches_of(partition):
                self.look(machine, partition, epoch, raw)
                held.update(record.offset for record in records_of(raw))
            for offset in range(partition.log.start_offset, partition.high_watermark):
                value = self._known_at(key, offset)
                if value is not None and offset not in held:
                    self._is_superseded(machine.name, key, offset, value)

    def _known_at(self, key: Key, offset: Offset) -> bytes | None:
        """What was read there, or acknowledged for good."""
        value = self._history.seen.get(key, {}).get(offset)
        if value is None:
            value = self._history.acknowledged.get(key, {}).get(offset)
            if value is not None and self._history.written[value].acks != -1:
                return None
        return value

    def _is_superseded(self, reader: str, key: Key, offset: Offset, value: bytes) -> None:
        if key in self._may_lose:
            return
        name = self._history.written[value].record_key
        offsets = self._offsets[key].get(name, [])
        later = bisect_right(offsets, offset)
        if later == len(offsets) or offsets[later] >= self._committed[key].offset:
            broken("I15", f"{reader} has no {value!r} at {offset} of {key[0].hex()[:6]}-{key[1]}, the last of {name!r}")


def _key(partition: Partition) -> Key:
    return partition.topic_id, partition.topic_partition.partition


def batches_of(partition: Partition) -> Iterator[tuple[Epoch, bytes]]:
    log = partition.log
    offset = log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, AT_ONCE_BYTES, log.end_offset, at_least_one=True)
        data = b"".join(bytes(region) for region in found.regions)
        if not data:
            return
        for position, batch in batches(data):
            yield batch.leader_epoch, data[position : position + 12 + batch.length]
            offset = batch.base_offset + batch.last_offset_delta + 1
