"""The replicas' logs: the same bytes at the same offset and epoch everywhere, dense, and whole.

I13, I16, I17, I20: whatever a replica holds was written once, by one leader of one epoch, and looks the same wherever
it was copied to.
"""

from collections.abc import Callable
from zlib import crc32

from klamm.ids import Epoch, Offset, Uuid
from klamm.log.log import Log
from klamm.partition.partition import Partition
from klamm.records.batch import batches, intact
from klamm.sim.checkers.compaction import CompactionChecker
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

AT_ONCE_BYTES = 1 << 20


class LogChecker:
    def __init__(self, compaction: CompactionChecker) -> None:
        self._compaction = compaction
        self._written: dict[tuple[Uuid, int, Offset, Epoch], int] = {}
        """The checksum of each batch that any replica ever held."""
        self._last: dict[tuple[Uuid, int], tuple[Log, dict[Offset, Epoch]]] = {}
        """In the end: the log of one replica, and the epochs of the batches of all."""
        self._ends: dict[Partition, tuple[Offset, Offset, Epoch]] = {}
        """Each life of a node has partitions of its own."""
        self.on_beginning: Callable[[Machine, Partition], None] = lambda machine, partition: None
        """Called when a replica begins elsewhere than before."""

    def after_step(self, machine: Machine) -> None:
        for partition in machine.broker.partitions.in_any_order():
            log = partition.log
            start, end, epoch = log.start_offset, log.end_offset, log.epochs.latest
            before = self._ends.get(partition)
            if before == (start, end, epoch) or partition.failure is not None:
                continue
            self._ends[partition] = (start, end, epoch)
            if before is None or before[0] != start:
                self.on_beginning(machine, partition)
            if before is None or before[2] != epoch:
                # It may have been cut, and have grown since.
                self._look(machine, partition, start, end)
                continue
            if start < before[0]:
                broken("I20", f"{machine.name}'s {partition} begins at {start}, and did at {before[0]}")
            if end > before[1]:
                self._look(machine, partition, max(start, before[1]), end)

    def _look(self, machine: Machine, partition: Partition, start: Offset, end: Offset) -> None:
        topic_id, index = partition.topic_id, partition.topic_partition.partition
        position_offset = start
        while position_offset < end:
            found = partition.log.read(position_offset, AT_ONCE_BYTES, end, at_least_one=True)
            data = b"".join(bytes(region) for region in found.regions)
            if not data:
                broken(
                    "I17", f"{machine.name}'s {partition} has nothing to read at {position_offset}, and ends at {end}"
                )
            for position, batch in batches(data):
                raw = data[position : position + 12 + batch.length]
                intact(memoryview(raw))
                last = batch.base_offset + batch.last_offset_delta
                if partition.log.settings.compact:
                    self._compaction.look(machine, partition, batch.leader_epoch, raw)
                    position_offset = last + 1
                    continue
                name = (topic_id, index, batch.base_offset, batch.leader_epoch)
                checksum = crc32(raw)
                if self._written.setdefault(name, checksum) != checksum:
                    broken("I16", f"{machine.name}'s {partition} holds other bytes at {name[2:]} than another replica")
                if batch.base_offset > position_offset:
                    broken("I17", f"{machine.name}'s {partition} has a hole from {position_offset}")
                position_offset = last + 1

    def at_end(self, machine: Machine) -> None:
        """The epoch cache says what the log says, and all say the same."""
        for partition in machine.broker.partitions:
            log = partition.log
            last = self._last.setdefault((partition.topic_id, partition.topic_partition.partition), (log, {}))
            if log.end_offset != last[0].end_offset:
                broken("I16", f"{machine.name}'s {partition} does not end where another replica does")
            latest = -1
            offset = log.start_offset
            while offset < log.end_offset:
                found = log.read(offset, AT_ONCE_BYTES, log.end_offset, at_least_one=True)
                data = b"".join(bytes(region) for region in found.regions)
                for _, batch in batches(data):
                    epoch = last[1].setdefault(batch.base_offset, batch.leader_epoch)
                    if epoch != batch.leader_epoch:
                        broken("I16", f"{machine.name}'s {partition} has another epoch than {epoch} at {batch}")
                    if batch.leader_epoch < latest:
                        broken("I13", f"{machine.name}'s {partition} goes back to epoch {batch.leader_epoch}")
                    latest = batch.leader_epoch
                    if log.epochs.epoch_at(max(batch.base_offset, log.start_offset)) != latest:
                        broken("I13", f"{machine.name}'s {partition} forgot the epoch of {batch.base_offset}")
                    offset = batch.base_offset + batch.last_offset_delta + 1
                if not data:
                    break
