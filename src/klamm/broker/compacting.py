"""Compaction as a chore: every log that is dirty enough, one after the other, a slice at a time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from klamm.broker.checkpoints import Checkpoints, with_records
from klamm.broker.facts import CompactionFailed, CompactionPassedOver
from klamm.errors import KafkaError
from klamm.facts import Tell
from klamm.ids import Now, TopicPartition
from klamm.log.compaction import Compaction
from klamm.log.files import DiskFailed, File
from klamm.partition.partition import Partition

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

COMPACTED_BYTES_A_SLICE = 256 << 10
FLUSH_PATIENCE_MS = 20.0


class FlushWish:
    """Files that have to reach the disk with the next flush, and whether they have."""

    __slots__ = ("done", "error", "files", "partition")

    def __init__(self, partition: Partition, files: Sequence[File]) -> None:
        self.partition = partition
        self.files = files
        self.done = False
        self.error: str | None = None


class Compacting:
    def __init__(self, broker: "Broker", checkpoints: Checkpoints, tell: Tell) -> None:
        self._broker = broker
        self._checkpoints = checkpoints
        self._tell = tell
        self._told: dict[TopicPartition, str] = {}
        """What was said of a partition last. It is said once, however often it is met."""

    def run(self, now: Now) -> Iterator[float]:
        for some in with_records(self._broker):
            for partition in some:
                if partition.failure is None and partition.log.settings.compact:
                    yield from self._compact(partition, now)
            yield 0.0

    def _compact(self, partition: Partition, now: Now) -> Iterator[float]:
        name = partition.topic_partition
        clean_to = self._checkpoints.clean_to
        compaction: Compaction | None = None
        try:
            compaction = partition.log.compaction(now, clean_to.get(name, 0), partition.high_watermark)
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
            # Mostly the log is as it was. It is tried again next time, and the error will be there for people to see.
            if compaction is not None:
                compaction.abandon()
            if partition.log.failed is not None and isinstance(error, DiskFailed):
                self._broker.disk_failed(partition, error)
            self._tell_once(name, CompactionFailed(str(name), str(error)))
            return
        clean_to[name] = compaction.clean_to
        if compaction.unreadable is not None:
            self._tell_once(name, CompactionPassedOver(str(name), str(compaction.unreadable)))
        else:
            self._told.pop(name, None)

    def _tell_once(self, name: TopicPartition, fact: CompactionFailed | CompactionPassedOver) -> None:
        if self._told.get(name) != fact.reason:
            self._told[name] = fact.reason
            self._tell(fact)

    def _flushed(self, partition: Partition, compaction: Compaction) -> Iterator[float]:
        """Wait until the copy is on disk."""
        wish = FlushWish(partition, compaction.to_flush)
        self._broker.flush_wishes.append(wish)
        while not wish.done and not partition.deleted:
            yield FLUSH_PATIENCE_MS
        if wish.error is not None:
            raise DiskFailed(wish.error)
        compaction.flushed()
