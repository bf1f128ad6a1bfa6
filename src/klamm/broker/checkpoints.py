"""The checkpoint files of a broker: what is flushed of each log, where it begins, what is committed, what is clean.

They save work after a crash and are never the only copy of a fact, so between shutdowns they are written without
waiting for the disk. One exception: recovery believes that everything below a recovery point is sound, so when a log is
cut below its own, or found shorter after a power loss, that has to be on disk before the log grows again. The same goes
for watermarks: a new record must not be taken for the committed one that stood there.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from klamm.broker.facts import CheckpointFailed
from klamm.controller.names import CLUSTER_METADATA
from klamm.facts import Tell
from klamm.ids import Now, Offset, TopicPartition
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, DiskFull
from klamm.partition.partition import Partition

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

PARTITIONS_A_SLICE = 50
METADATA = TopicPartition(CLUSTER_METADATA, 0)
FILES = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.LOG_START_OFFSETS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANER_OFFSETS,
)


@dataclass(slots=True)
class Offsets:
    """What the checkpoints say."""

    recovery_points: dict[TopicPartition, Offset] = field(default_factory=dict)
    start_offsets: dict[TopicPartition, Offset] = field(default_factory=dict)
    watermarks: dict[TopicPartition, Offset] = field(default_factory=dict)

    def note(self, partition: Partition) -> None:
        name, log = partition.topic_partition, partition.log
        self.recovery_points[name] = log.recovery_point
        self.watermarks[name] = partition.high_watermark
        if log.start_offset > (log.segments.first_offset or 0):
            self.start_offsets[name] = log.start_offset


class Checkpoints:
    def __init__(self, broker: "Broker", tell: Tell) -> None:
        self._broker = broker
        self._tell = tell
        self._written: dict[str, dict[TopicPartition, Offset]] = {}
        self._to_be_written: set[str] = set()
        self.clean_to: dict[TopicPartition, Offset] = {}
        """How far each compacted log is clean."""

    def load(self) -> None:
        """What earlier lives noted."""
        for name in FILES:
            self._written[name] = self._broker.partitions.checkpointed(name)
        self.clean_to = dict(self._written[checkpoint.CLEANER_OFFSETS])

    def note_all(self, now: Now) -> Iterator[float]:
        """A chore."""
        offsets = Offsets()
        for some in with_records(self._broker):
            for partition in some:
                offsets.note(partition)
            yield 0.0
        with self._later_if_full():
            self._write_all(offsets, durable=False)

    def note_watermarks(self, now: Now) -> Iterator[float]:
        """A chore, done more often: the less a broker has to learn anew of what is committed, the sooner it shows it to
        readers when it leads."""
        watermarks: dict[TopicPartition, Offset] = {}
        for some in with_records(self._broker):
            for partition in some:
                watermarks[partition.topic_partition] = partition.high_watermark
            yield 0.0
        with self._later_if_full():
            self._write(checkpoint.HIGH_WATERMARKS, watermarks, durable=False)

    @contextmanager
    def _later_if_full(self) -> Iterator[None]:
        """What is on disk holds until there is room; that there is none was told."""
        try:
            yield
        except DiskFull as error:
            self._broker.storage.note(error)

    def note_now(self) -> None:
        """At a clean shutdown, for good."""
        offsets = Offsets()
        for some in with_records(self._broker):
            for partition in some:
                offsets.note(partition)
        self._write_all(offsets, durable=True)

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """These are gone. What the checkpoints say of them must not be believed of a topic of the same name."""
        for name in partitions:
            self.clean_to.pop(name, None)
        for file, offsets in self._written.items():
            before = len(offsets)
            for name in partitions:
                offsets.pop(name, None)
            if len(offsets) == before:
                continue
            try:
                self._broker.files.write_whole(file, checkpoint.offsets_text(offsets), durable=False)
            except DiskFailed as error:
                self._to_be_written.add(file)
                self._tell(CheckpointFailed(file, str(error)))

    def were_cut(self, partitions: Sequence[Partition]) -> None:
        """These logs were truncated, or lost their ends with the power: nothing beyond may be believed of them. If that
        cannot be put down, they take no more."""
        lowered = set()
        for partition in partitions:
            if partition.failure is not None:
                continue
            name, log = partition.topic_partition, partition.log
            limits = (log.recovery_point, log.start_offset, partition.high_watermark, log.end_offset)
            for file, limit in zip(FILES, limits, strict=True):
                if self._written[file].get(name, 0) > limit:
                    self._written[file][name] = limit
                    lowered.add(file)
            if self.clean_to.get(name, 0) > log.end_offset:
                self.clean_to[name] = log.end_offset
        try:
            for file in sorted(lowered):
                self._broker.files.write_whole(file, checkpoint.offsets_text(self._written[file]))
        except DiskFailed as error:
            for partition in partitions:
                if partition.failure is None:
                    self._broker.disk_failed(partition, error)

    def _write_all(self, noted: Offsets, *, durable: bool) -> None:
        noted.recovery_points[METADATA] = self._broker.metadata_recovery_point()
        maps = (noted.recovery_points, noted.start_offsets, noted.watermarks, self.clean_to)
        for file, offsets in zip(FILES, maps, strict=True):
            self._write(file, offsets, durable=durable)

    def _write(self, file: str, offsets: dict[TopicPartition, Offset], *, durable: bool) -> None:
        before = self._written.setdefault(file, {})
        if not self._broker.is_open:
            # Which logs are ours is not known yet: what earlier lives noted of them holds.
            offsets = before | offsets
        for partition in self._broker.partitions:
            # Of a log that could not be opened we know no more than earlier lives did.
            if partition.failure and not partition.log.segments.all and partition.topic_partition in before:
                offsets[partition.topic_partition] = before[partition.topic_partition]
        if durable or file in self._to_be_written or before != offsets:
            self._broker.files.write_whole(file, checkpoint.offsets_text(offsets), durable=durable)
            self._written[file] = dict(offsets)
            self._to_be_written.discard(file)


def with_records(broker: "Broker") -> Iterator[list[Partition]]:
    """The partitions that have records and are still there, a few at a time."""
    iterator = iter([partition for partition in broker.partitions if partition.log.segments.all])
    while some := list(islice(iterator, PARTITIONS_A_SLICE)):
        yield [partition for partition in some if not partition.deleted]
