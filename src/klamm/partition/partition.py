"""One replica of one partition, on one broker: its log, its role, and how far its records are committed.

The leader takes writes and counts who has them. Consumers read below the high watermark only. A topic with
`flush.messages=1` counts what is on disk, every other topic what is in the log: `durable_end` is that number, and it is
this replica's voice when the watermark is computed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, BrokerId, Epoch, Now, Offset, TopicPartition, Uuid
from klamm.log.files import DiskFailed, DiskFull
from klamm.log.log import Appended, Log
from klamm.log.reading import LogSlice
from klamm.log.settings import FOREVER_MS, LogSettings
from klamm.partition.watermark import committed_offset

ALL = -1
"""A producer that waits for all in-sync replicas."""


@contextmanager
def storage_errors() -> Iterator[None]:
    """A disk that does not give what was written is the reader's bad luck, and no reason to doubt the rest."""
    try:
        yield
    except DiskFailed as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


class Grown(Protocol):
    """Who is told that a partition has to be settled at the end of the step."""

    def __call__(self, partition: "Partition", /) -> None: ...


class Partition:
    __slots__ = (
        "_commits_alone",
        "_grown",
        "_grown_noted",
        "_min_in_sync_setting",
        "_settled_start",
        "_settled_watermark",
        "deleted",
        "failed_full",
        "failure",
        "failure_told",
        "high_watermark",
        "in_sync",
        "is_flushed",
        "is_name_flushed",
        "leader",
        "leader_epoch",
        "log",
        "me",
        "partition_epoch",
        "replicas",
        "sessions",
        "topic_id",
        "topic_partition",
        "waits_for_disk",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: Log,
        me: BrokerId,
        min_in_sync_replicas: int,
        grown: Grown,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.me = me
        self.leader: BrokerId = NO_BROKER
        self.leader_epoch: Epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.in_sync: tuple[BrokerId, ...] = ()
        self.high_watermark: Offset = log.start_offset
        self.failure: str | None = None
        self.failure_told = False
        self.failed_full = False
        """Whether it failed because the disk was full, which passes."""
        self.deleted = False
        self.is_name_flushed = False
        """Whether `partition.metadata` is on disk for sure."""
        self.sessions: list[tuple[Any, Any]] | None = None
        """Fetch sessions that hold this partition, and their key for it; none for most."""
        self._settled_watermark: Offset = -1
        self._settled_start: Offset = -1
        self._grown = grown
        self._grown_noted = False
        self.configure(log.settings, min_in_sync_replicas)

    # Roles.

    def become_leader(self, epoch: Epoch, replicas: tuple[BrokerId, ...], in_sync: tuple[BrokerId, ...]) -> None:
        assert epoch >= self.leader_epoch, "leader epochs only grow"
        if epoch > self.leader_epoch:
            self.log.epochs.assign(epoch, self.log.end_offset)
        self.leader = self.me
        self.leader_epoch = epoch
        self.replicas = replicas
        self.in_sync = in_sync
        self._see_who_commits()
        self.note_grown()

    def configure(self, settings: LogSettings, min_in_sync_replicas: int) -> None:
        """The topic's settings, from now on."""
        self.log.settings = settings
        self._min_in_sync_setting = min_in_sync_replicas
        self.waits_for_disk = settings.flush_messages == 1
        self.is_flushed = settings.flush_messages < FOREVER_MS or settings.flush_ms < FOREVER_MS
        self._see_who_commits()

    def _see_who_commits(self) -> None:
        self._commits_alone = len(self.in_sync) == 1 and not self.waits_for_disk

    @property
    def is_leader(self) -> bool:
        return self.leader == self.me

    def check_serving(self) -> None:
        """Raise what a client has to hear if this replica cannot serve it."""
        if self.deleted:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self.leader != self.me:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    # Writing.

    def append(self, view: memoryview, acks: int, now: Now) -> Appended:
        """Append one batch of a producer. It is committed at once where this replica is alone in sync, else when the
        others have it."""
        if self.failure is not None or self.leader != self.me:
            self.check_serving()
        if acks == ALL and len(self.in_sync) < self.min_in_sync:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            appended = self.log.append_as_leader(view, self.leader_epoch, now)
        except DiskFailed as error:
            self._disk_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if not self._grown_noted:
            self.note_grown()
        if self._commits_alone:
            self.high_watermark = self.log.end_offset
        return appended

    @property
    def min_in_sync(self) -> int:
        """As many as the topic asks for, but never more than there are."""
        return min(self._min_in_sync_setting, len(self.replicas))

    def advance_start_offset(self, offset: Offset) -> None:
        """Records before this offset are gone."""
        self.log.advance_start_offset(offset)
        self.note_grown()

    def expire(self, now: Now) -> bool:
        """Delete what has outlived its retention; whether anything was."""
        before = self.log.start_offset
        self.log.delete_expired_segments(now, self.high_watermark)
        return self.log.start_offset != before

    def note_grown(self) -> None:
        self._grown_noted = True
        self._grown(self)

    def maybe_advance(self) -> bool:
        """Move the high watermark as far as the in-sync replicas allow; whether readers see something else than when it
        was settled last. Part of settling."""
        self._grown_noted = False
        committed = committed_offset([self.durable_end])
        if committed > self.high_watermark:
            self.high_watermark = committed
        start_offset = self.log.start_offset
        if self.high_watermark == self._settled_watermark and start_offset == self._settled_start:
            return False
        self._settled_watermark, self._settled_start = self.high_watermark, start_offset
        return True

    @property
    def durable_end(self) -> Offset:
        """Below this, this replica's records survive what the topic asks them to survive."""
        return self.log.recovery_point if self.waits_for_disk else self.log.end_offset

    # Reading.

    def read(self, offset: Offset, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """Committed records from `offset` on. Past the watermark but within the log there is nothing yet, which is no
        error."""
        if self.failure is not None or self.leader != self.me:
            self.check_serving()
        with storage_errors():
            return self.log.read(offset, max_bytes, self.high_watermark, at_least_one=at_least_one)

    def check_epoch(self, epoch: Epoch) -> None:
        """What a client believes the leader epoch to be; -1 believes nothing."""
        if epoch == -1 or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    @property
    def last_stable_offset(self) -> Offset:
        """Where a read-committed consumer has to stop. Without transactions, at the watermark."""
        return self.high_watermark

    def fail(self, reason: str, *, full: bool = False) -> None:
        """The disk broke a promise: nothing more is taken, served or acknowledged here until the log is recovered."""
        self.failure = reason
        self.failed_full = full
        self.log.fail(reason)
        if not self._grown_noted:
            self.note_grown()

    def revive(self, now: Now) -> None:
        """Recover the log from what is on disk, and go on."""
        assert self.failure is not None
        self.log = self.log.reopened(now)
        self.high_watermark = min(self.high_watermark, self.log.end_offset)
        self.failure = None
        self.failure_told = False
        self.failed_full = False
        self.note_grown()

    def _disk_failed(self, error: DiskFailed) -> None:
        if self.log.failed:
            self.fail(str(error), full=isinstance(error, DiskFull))

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else "follower"
        log = f"{self.log.start_offset}..{self.log.end_offset}"
        in_sync = ",".join(map(str, self.in_sync))
        return (
            f"<{self.topic_partition} {role} epoch={self.leader_epoch} log={log} "
            f"high_watermark={self.high_watermark} isr={in_sync}>"
        )
