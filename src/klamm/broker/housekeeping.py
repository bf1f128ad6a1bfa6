"""What a broker does besides serving: expire, compact, checkpoint, forget, remove. All of it in slices.

A slice looks at a few dozen partitions or works on one piece of a compaction: some milliseconds at most.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from klamm.broker.checkpoints import METADATA, Checkpoints, with_records
from klamm.broker.compacting import Compacting, FlushWish
from klamm.broker.facts import PartitionRevived, ProducersForgotten, RetentionFailed
from klamm.broker.segment_ends import SegmentEnds
from klamm.broker.storage import LOOK_INTERVAL_MS
from klamm.errors import KafkaError
from klamm.facts import Tell
from klamm.ids import Now, TopicPartition
from klamm.log.files import DiskFailed, DiskFull
from klamm.partition.partition import Partition

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

__all__ = ["METADATA", "Chore", "FlushWish", "Housekeeping"]

REMOVAL_INTERVAL_MS = 5_000.0
REVIVAL_INTERVAL_MS = 5_000.0
PRODUCER_LIMIT_INTERVAL_MS = 10_000.0
SEGMENT_ENDS_INTERVAL_MS = 10_000.0
ROOM_TO_REVIVE_BYTES = 16 << 20


@dataclass(slots=True)
class Chore:
    run: Callable[[Now], Iterator[float]]
    interval_ms: float | Callable[[], float]
    """A function if it may be altered while the broker runs."""


class Housekeeping:
    def __init__(self, broker: "Broker", tell: Tell) -> None:
        self._broker = broker
        self._tell = tell
        self._has_told_of_producers = False
        self._checkpoints = Checkpoints(broker, tell)
        self._compacting = Compacting(broker, self._checkpoints, tell)
        self.load = self._checkpoints.load
        self.checkpoint_now = self._checkpoints.note_now
        self.forget: Callable[[Sequence[TopicPartition]], None] = self._checkpoints.forget
        self.were_cut: Callable[[Sequence[Partition]], None] = self._checkpoints.were_cut

    def chores(self) -> list[Chore]:
        config = self._broker.config
        checkpoint_ms = min(
            config.integer("log.flush.offset.checkpoint.interval.ms"),
            config.integer("log.flush.start.offset.checkpoint.interval.ms"),
        )
        chores = [
            Chore(self._expire, config.integer("log.retention.check.interval.ms")),
            Chore(self._checkpoints.note_all, checkpoint_ms),
            Chore(self._checkpoints.note_watermarks, config.integer("replica.high.watermark.checkpoint.interval.ms")),
            Chore(self._forget_producers, config.integer("producer.id.expiration.check.interval.ms")),
            Chore(self._limit_producers, PRODUCER_LIMIT_INTERVAL_MS),
            Chore(self._broker.partitions.directories.remove_doomed, REMOVAL_INTERVAL_MS),
            Chore(self._revive, REVIVAL_INTERVAL_MS),
            Chore(self._broker.storage.watch, LOOK_INTERVAL_MS),
            Chore(SegmentEnds(self._broker, self._tell).look, SEGMENT_ENDS_INTERVAL_MS),
        ]
        if config.boolean("log.cleaner.enable"):
            backoff_ms = lambda: self._broker.config.integer("log.cleaner.backoff.ms")  # noqa: E731
            chores.append(Chore(self._compacting.run, backoff_ms))
        return chores

    def _expire(self, now: Now) -> Iterator[float]:
        for some in with_records(self._broker):
            for partition in some:
                if partition.failure is None:
                    self._guarded(partition, lambda each: each.expire(now))
            yield 0.0

    def _revive(self, now: Now) -> Iterator[float]:
        """A log that failed because the disk was full is recovered once there is room again. One that failed for
        another reason is not: whether that disk can be trusted is for a person to say, with a restart."""
        for partition in [each for each in self._broker.partitions if each.failed_full]:
            if not self._broker.files.space().has_room:
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
            self._broker.replication.revived(partition)
            yield 0.0

    def _forget_producers(self, now: Now) -> Iterator[float]:
        silent_ms = self._broker.config.integer("producer.id.expiration.ms")
        for some in with_records(self._broker):
            for partition in some:
                if partition.failure is None:
                    partition.log.producers.expire(now.wall_ms, silent_ms)
            yield 0.0

    def _limit_producers(self, now: Now) -> Iterator[float]:
        """Not more of them than a broker may remember: partitions that remember many forget some first."""
        config = self._broker.config
        most = config.integer("klamm.broker.max.producers")
        remembering: list[Partition] = []
        forgotten = 0
        for some in with_records(self._broker):
            remembering += [partition for partition in some if len(partition.log.producers)]
            forgotten += sum(partition.log.producers.forgotten for partition in some)
            yield 0.0
        of_partition = config.integer("klamm.partition.max.producers")
        # (A log that was recovered may remember more than it may.)
        share = min(of_partition, largest_share([len(each.log.producers) for each in remembering], most))
        for partition in remembering:
            before = len(partition.log.producers)
            if before > share:
                partition.log.producers.forget_oldest(share)
                forgotten += before - len(partition.log.producers)
                yield 0.0
        if forgotten and not self._has_told_of_producers:
            self._has_told_of_producers = True
            self._tell(ProducersForgotten(forgotten, of_partition, most))

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


def largest_share(counts: Sequence[int], most: int) -> int:
    """So many each may keep at most, that all together keep no more than so many; at least one."""
    left = most
    ascending = sorted(counts)
    for position, count in enumerate(ascending):
        share = left // (len(ascending) - position)
        if count > share:
            return max(share, 1)
        left -= count
    return most
