"""What a broker does besides serving: expire, compact, checkpoint, forget, remove. All of it in slices.

A slice looks at a few dozen partitions or works on one piece of a compaction: some milliseconds at most. Checkpoints
save work after a crash and are never the only copy of a fact, so between shutdowns they are written without waiting
for the disk.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from klamm.broker.facts import CheckpointFailed, CompactionFailed, PartitionRevived, RetentionFailed
from klamm.controller.names import CLUSTER_METADATA
from klamm.errors import KafkaError
from klamm.facts import Tell
from klamm.ids import Now, Offset, TopicPartition
from klamm.log import checkpoint
from klamm.log.compaction import Compaction
from klamm.log.files import DiskFailed, DiskFull, File
from klamm.partition.partition import Partition

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

PARTITIONS_A_SLICE = 50
COMPACTED_BYTES_A_SLICE = 256 << 10
REMOVAL_INTERVAL_MS = 5_000.0
REVIVAL_INTERVAL_MS = 5_000.0
FLUSH_PATIENCE_MS = 20.0
ROOM_TO_REVIVE_BYTES = 16 << 20
METADATA = TopicPartition(CLUSTER_METADATA, 0)
CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.LOG_START_OFFSETS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANER_OFFSETS,
)


@dataclass(slots=True)
class Chore:
    run: Callable[[Now], Iterator[float]]
    interval_ms: float


class FlushWish:
    """Files that have to reach the disk with the next flush, and whether they have."""

    __slots__ = ("done", "error", "files", "partition")

    def __init__(self, partition: Partition, files: Sequence[File]) -> None:
        self.partition = partition
        self.files = files
        self.done = False
        self.error: str | None = None


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


class Housekeeping:
    def __init__(self, broker: "Broker", tell: Tell) -> None:
        self._broker = broker
        self._tell = tell
        self._checkpointed: dict[str, dict[TopicPartition, Offset]] = {}
        self._to_be_written: set[str] = set()
        self._clean_to: dict[TopicPartition, Offset] = {}
        """How far each compacted log is clean."""

    def chores(self) -> list[Chore]:
        config = self._broker.config
        checkpoint_ms = min(
            config.integer("log.flush.offset.checkpoint.interval.ms"),
            config.integer("log.flush.start.offset.checkpoint.interval.ms"),
        )
        chores = [
            Chore(self._expire, config.integer("log.retention.check.interval.ms")),
            Chore(self._checkpoint, checkpoint_ms),
            Chore(self._forget_producers, config.integer("producer.id.expiration.check.interval.ms")),
            Chore(self._broker.partitions.directories.remove_doomed, REMOVAL_INTERVAL_MS),
            Chore(self._revive, REVIVAL_INTERVAL_MS),
        ]
        if config.boolean("log.cleaner.enable"):
            chores.append(Chore(self._compact, config.integer("log.cleaner.backoff.ms")))
        return chores

    def load(self) -> None:
        """What earlier lives noted."""
        for name in CHECKPOINTS:
            self._checkpointed[name] = self._broker.partitions.checkpointed(name)
        self._clean_to = dict(self._checkpointed[checkpoint.CLEANER_OFFSETS])

    def _in_slices(self) -> Iterator[list[Partition]]:
        """The partitions that have records, a few at a time; those that work, at the time they are given."""
        for some in self._all_in_slices():
            yield [partition for partition in some if partition.failure is None]

    def _all_in_slices(self) -> Iterator[list[Partition]]:
        iterator = iter([partition for partition in self._broker.partitions if partition.log.segments.all])
        while some := list(islice(iterator, PARTITIONS_A_SLICE)):
            yield [partition for partition in some if not partition.deleted]

    def _expire(self, now: Now) -> Iterator[float]:
        for some in self._in_slices():
            for partition in some:
                self._guarded(partition, lambda each: each.expire(now))
            yield 0.0

    def _revive(self, now: Now) -> Iterator[float]:
        """A log that failed because the disk was full is recovered once there is room again. One that failed for
        another reason is not: whether that disk can be trusted is for a person to say, with a restart."""
        for partition in [each for each in self._broker.partitions if each.failed_full]:
            if self._broker.files.space().free_bytes < ROOM_TO_REVIVE_BYTES:
                return
            try:
                partition.revive(now)
            except DiskFull:
                return
            except (DiskFailed, KafkaError) as error:
                # Not the room was missing, or not that alone: it stays offline.
                self._broker.fail(partition, str(error))
                continue
            self._tell(PartitionRevived(str(partition.topic_partition), partition.log.end_offset))
            self._broker.announce(partition)
            yield 0.0

    def _forget_producers(self, now: Now) -> Iterator[float]:
        silent_ms = self._broker.config.integer("producer.id.expiration.ms")
        for some in self._in_slices():
            for partition in some:
                partition.log.producers.expire(now.wall_ms, silent_ms)
            yield 0.0

    def _compact(self, now: Now) -> Iterator[float]:
        """Compact every log that is dirty enough, one after the other."""
        for some in self._in_slices():
            for partition in some:
                if partition.log.settings.compact:
                    yield from self._compact_one(partition, now)
            yield 0.0

    def _compact_one(self, partition: Partition, now: Now) -> Iterator[float]:
        name = partition.topic_partition
        compaction: Compaction | None = None
        try:
            compaction = partition.log.compaction(now, self._clean_to.get(name, 0), partition.high_watermark)
            if compaction is None:
                return
            while not compaction.step(COMPACTED_BYTES_A_SLICE):
                if compaction.to_flush:
                    yield from self._flushed(partition, compaction)
                yield 0.0
                if partition.deleted or partition.failure is not None:
                    compaction.abandon()
                    return
        except (DiskFailed, KafkaError) as error:
            # The log is as it was. It is tried again next time, and the error will be there for people to see.
            if compaction is not None:
                compaction.abandon()
            self._tell(CompactionFailed(str(name), str(error)))
            return
        self._clean_to[name] = compaction.clean_to

    def _flushed(self, partition: Partition, compaction: Compaction) -> Iterator[float]:
        """Wait until the copy is on disk."""
        wish = FlushWish(partition, compaction.to_flush)
        self._broker.flush_wishes.append(wish)
        while not wish.done and not partition.deleted:
            yield FLUSH_PATIENCE_MS
        if wish.error is not None:
            raise DiskFailed(wish.error)
        compaction.flushed()

    def _checkpoint(self, now: Now) -> Iterator[float]:
        offsets = Offsets()
        for some in self._all_in_slices():
            for partition in some:
                offsets.note(partition)
            yield 0.0
        self._write(offsets, durable=False)

    def checkpoint_now(self) -> None:
        """At a clean shutdown, for good."""
        offsets = Offsets()
        for some in self._all_in_slices():
            for partition in some:
                offsets.note(partition)
        self._write(offsets, durable=True)

    def forget(self, partitions: Sequence[TopicPartition]) -> None:
        """These are gone. What the checkpoints say of them must not be believed of a topic of the same name."""
        for offsets in (self._clean_to, *self._checkpointed.values()):
            for name in partitions:
                offsets.pop(name, None)
        for file, offsets in self._checkpointed.items():
            try:
                self._broker.files.write_whole(file, checkpoint.offsets_text(offsets), durable=False)
            except DiskFailed as error:
                self._to_be_written.add(file)
                self._tell(CheckpointFailed(file, str(error)))

    def _write(self, noted: Offsets, *, durable: bool) -> None:
        noted.recovery_points[METADATA] = self._broker.metadata_recovery_point()
        maps = (noted.recovery_points, noted.start_offsets, noted.watermarks, self._clean_to)
        unopened = [
            each.topic_partition for each in self._broker.partitions if each.failure and not each.log.segments.all
        ]
        for name, offsets in zip(CHECKPOINTS, maps, strict=True):
            before = self._checkpointed[name]
            offsets.update({each: before[each] for each in unopened if each in before})
            if durable or name in self._to_be_written or self._checkpointed.get(name) != offsets:
                self._broker.files.write_whole(name, checkpoint.offsets_text(offsets), durable=durable)
                self._checkpointed[name] = dict(offsets)
                self._to_be_written.discard(name)

    def _guarded(self, partition: Partition, work: Callable[[Partition], bool]) -> None:
        """Do something to a partition; a disk that fails under it takes the partition offline, nothing else."""
        try:
            if work(partition):
                self._broker.announce(partition)
        except DiskFailed as error:
            self._broker.disk_failed(partition, error)
        except KafkaError as error:
            # What is damaged is kept: somebody may want to look at it, and readers are told.
            self._tell(RetentionFailed(str(partition.topic_partition), str(error)))
