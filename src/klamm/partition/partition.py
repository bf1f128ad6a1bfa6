"""One replica of one partition, on one broker: its log, its role, and how far its records are committed.

The leader takes writes and counts who has them (`leader.py`). Followers ask it for records, append them at the same
offsets, and ask again (`follower.py`, `fetching.py`). Consumers read below the high watermark only. A topic with
`flush.messages=1` counts what is on disk, every other topic what is in the log: `durable_end` is that number, and it is
this replica's voice when the watermark is computed.

The metadata says who leads (`take_role`). A leader that missed its successor takes writes and acknowledges none of
them with acks=all: its followers are gone, so its watermark stands still, and the controller refuses its wishes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, NO_OFFSET, BrokerId, Bytes, Epoch, Now, Offset, TopicPartition, Uuid
from klamm.log.files import DiskFailed, DiskFull
from klamm.log.log import Appended, Log
from klamm.log.reading import LogSlice
from klamm.log.settings import FOREVER_MS, LogSettings
from klamm.metadata.image import PartitionState
from klamm.partition.follower import agreed_end
from klamm.partition.isr import IsrOutcome, IsrWish
from klamm.partition.leader import Leader
from klamm.partition.progress import NO_BROKER_EPOCH, Progress
from klamm.partition.surroundings import Surroundings
from klamm.partition.traffic import Traffic
from klamm.partition.watermark import followers_watermark
from klamm.records.validation import Built, Validation

ALL = -1
"""A producer that waits for all in-sync replicas."""


@contextmanager
def storage_errors(partition: "Partition") -> Iterator[None]:
    """A disk that does not give what was written is the reader's bad luck, and no reason to doubt the rest."""
    try:
        yield
    except DiskFailed as error:
        partition.note_disk_failed(error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


class Grown(Protocol):
    """Who is told that a partition has to be settled at the end of the step."""

    def __call__(self, partition: "Partition", /) -> None: ...


class Partition:
    __slots__ = (
        "_agreed_end",
        "_commits_alone",
        "_grown",
        "_grown_noted",
        "_leaders_watermark",
        "_min_in_sync_setting",
        "_news_for_readers",
        "_settled_start",
        "_settled_watermark",
        "_surroundings",
        "_told_followers",
        "can_commit",
        "deleted",
        "failed_full",
        "failure",
        "failure_told",
        "follower_sessions",
        "followers_hear",
        "high_watermark",
        "in_sync",
        "is_flushed",
        "is_name_flushed",
        "leader",
        "leader_epoch",
        "leading",
        "log",
        "me",
        "partition_epoch",
        "replicas",
        "sessions",
        "start_is_watched",
        "terms_ended",
        "topic_id",
        "topic_partition",
        "traffic",
        "waits_for_disk",
        "why_gone",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: Log,
        me: BrokerId,
        min_in_sync_replicas: int,
        grown: Grown,
        surroundings: Surroundings | None = None,
        high_watermark: Offset = 0,
        traffic: Traffic | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.traffic = traffic or Traffic()
        """Its topic's."""
        self.me = me
        self.leader: BrokerId = NO_BROKER
        self.leader_epoch: Epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[BrokerId, ...] = ()
        self.in_sync: tuple[BrokerId, ...] = ()
        """As the metadata says, or as the controller has answered since."""
        self.leading: Leader | None = None
        self.terms_ended = 0
        """How often we stopped leading it."""
        # What an earlier life knew to be committed is committed, as far as the log still holds it.
        self.high_watermark: Offset = max(log.start_offset, min(high_watermark, log.end_offset))
        self.failure: str | None = None
        self.failure_told = False
        self.failed_full = False
        """Whether it failed because the disk was full, which passes."""
        self.deleted = False
        self.why_gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        """What to say once it is deleted: there is no such partition, or it lives elsewhere now."""
        self.is_name_flushed = False
        """Whether `partition.metadata` is on disk for sure."""
        self.sessions: list[tuple[Any, Any]] | None = None
        """Fetch sessions of consumers that hold this partition, and their key for it; none for most."""
        self.follower_sessions: list[tuple[Any, Any]] | None = None
        """The same of followers, who hear of what is not committed too."""
        self.followers_hear = False
        """Whether we lead it and it has followers."""
        self.can_commit = True
        """False while we lead it and fewer are in sync than have to be."""
        self.start_is_watched = False
        """Whether somebody waits until records are gone from every replica."""
        self._leaders_watermark: Offset = NO_OFFSET
        self._agreed_end: Offset = 0
        """Below this, what we have is what the present leader has, or had."""
        self._settled_watermark: Offset = -1
        self._settled_start: Offset = -1
        self._news_for_readers = False
        self._told_followers: tuple[Offset, Offset, Offset] = (-1, -1, -1)
        self._grown = grown
        self._grown_noted = False
        self._surroundings = surroundings or Surroundings()
        self.configure(log.settings, min_in_sync_replicas)

    # Roles.

    def take_role(self, state: PartitionState, now: Now) -> None:
        """Become what the metadata says. Without effect if that is older than what the controller told us itself."""
        if state.partition_epoch < self.partition_epoch:
            return
        assert state.leader_epoch >= self.leader_epoch, "leader epochs only grow"
        is_new_epoch = state.leader_epoch > self.leader_epoch
        is_news = state.partition_epoch > self.partition_epoch
        self.leader = state.leader
        self._count_in_sync(state.isr)
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.in_sync = state.isr
        if state.leader != self.me:
            if self.leading is not None:
                self.terms_ended += 1
            if self.leading is not None or is_new_epoch:
                self._leaders_watermark = self.high_watermark
                self._agreed_end = 0
            self.leading = None
        else:
            if self.leading is None or is_new_epoch:
                self.log.epochs.assign(state.leader_epoch, self.log.end_offset)
                self.leading = Leader(self.me, state.leader_epoch, self.log.end_offset, self._surroundings)
            if is_news:
                self.leading.pending = None
            self.leading.adopt(state.replicas, state.isr, state.recovering, now.monotonic_ms)
            # Who caught up while a wish was pending has nothing more to say where nobody writes.
            if self.leading.needs_a_wish(self.high_watermark, self.log.end_offset, now.monotonic_ms):
                self._surroundings.wants_isr_look(self)
        self._see_who_commits()
        self.note_grown()

    def configure(self, settings: LogSettings, min_in_sync_replicas: int) -> None:
        """The topic's settings, from now on."""
        self.log.settings = settings
        self._min_in_sync_setting = min_in_sync_replicas
        self.waits_for_disk = settings.flush_messages == 1
        self.is_flushed = settings.flush_messages < FOREVER_MS or settings.flush_ms < FOREVER_MS
        self._see_who_commits()
        if self.leader_epoch >= 0:
            self.note_grown()

    def _see_who_commits(self) -> None:
        self.followers_hear = self.leading is not None and bool(self.leading.followers)
        self.can_commit = self.leading is None or len(self.in_sync) >= self.min_in_sync
        self._commits_alone = self.leading is not None and not self.followers_hear and not self.waits_for_disk

    def _count_in_sync(self, in_sync: tuple[BrokerId, ...]) -> None:
        """Those are in sync from now on. Each change is counted once, by who leads after it."""
        if self.leader == self.me and self.partition_epoch >= 0 and in_sync != self.in_sync:
            before, after = set(self.in_sync), set(in_sync)
            self.traffic.isr_shrinks += not before <= after
            self.traffic.isr_expands += not after <= before

    @property
    def is_leader(self) -> bool:
        return self.leader == self.me

    def check_serving(self) -> None:
        """Raise what a client has to hear if this replica cannot serve it."""
        if self.deleted:
            raise KafkaError(self.why_gone)
        if self.leader != self.me:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    def check_reading(self) -> None:
        """The same for a consumer, who may be served by a follower where consumers are sent to followers."""
        if self.leader == self.me or not self._surroundings.readers_may_follow or self.deleted:
            self.check_serving()
        elif self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)

    # Writing.

    def append(
        self,
        view: memoryview,
        acks: int,
        now: Now,
        *,
        validation: Validation | Built | None = None,
        may_wait: bool = False,
    ) -> Appended:
        """Append one batch of a producer. It is committed at once where this is the only replica, else when the others
        have it. Who may wait: see `Log.append_as_leader`."""
        if self.failure is not None or self.leader != self.me:
            self.check_serving()
        if acks == ALL and len(self.in_sync) < self.min_in_sync:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        try:
            appended = self.log.append_as_leader(view, self.leader_epoch, now, validation=validation, may_wait=may_wait)
        except DiskFailed as error:
            self._disk_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if not appended.duplicate:
            traffic = self.traffic
            traffic.messages_in += appended.last_offset - appended.base_offset + 1
            traffic.bytes_in += len(view)
        if not self._grown_noted:
            self.note_grown()
        if self._commits_alone:
            self.high_watermark = self.log.end_offset
        elif self.leading is not None:
            self.leading.grows(self.log.end_offset, now.monotonic_ms)
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
        if self.log.start_offset == before:
            return False
        self.note_grown()
        return True

    def note_grown(self) -> None:
        self._grown_noted = True
        self._grown(self)

    # Fetches of followers.

    def check_follower(self, broker_id: BrokerId, broker_epoch: int, leader_epoch: Epoch) -> Progress:
        """What we know of this follower; raise what it has to hear if we do not lead it, under this epoch, in this
        life."""
        self.check_serving()
        self.check_epoch(leader_epoch)
        assert self.leading is not None
        follower = self.leading.followers.get(broker_id)
        if follower is None:
            # Perhaps it was added by a reassignment that we have not heard of: it will ask again.
            unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER if leader_epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(unknown, f"{broker_id} is no replica of {self.topic_partition}")
        if broker_epoch != NO_BROKER_EPOCH and broker_epoch < self._surroundings.active.get(broker_id, broker_epoch):
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"a fetch of an earlier life of broker {broker_id}")
        return follower

    def follower_fetched(
        self, follower: Progress, broker_epoch: int, fetch_offset: Offset, start_offset: Offset, now: Now
    ) -> None:
        """It holds everything below this offset, in our history: whoever calls has made sure of that."""
        leading = self.leading
        assert leading is not None
        has_moved = follower.end_offset != fetch_offset
        if self.start_is_watched and follower.start_offset != start_offset:
            self._news_for_readers = has_moved = True
        leading.fetched(follower, fetch_offset, start_offset, broker_epoch, self.log.end_offset, now.monotonic_ms)
        if has_moved and not self._grown_noted:
            self.note_grown()
        if follower.broker_id not in leading.committed and leading.could_join(follower, self.high_watermark):
            self._surroundings.wants_isr_look(self)

    def read_for_follower(self, offset: Offset, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """Records from `offset` on, committed or not."""
        with storage_errors(self):
            return self.log.read(offset, max_bytes, self.log.end_offset, at_least_one=at_least_one)

    # The watermark.

    def maybe_advance(self) -> bool:
        """Move the high watermark as far as the in-sync replicas allow; whether readers see something else than when it
        was settled last. Part of settling."""
        self._grown_noted = False
        if self.leading is None:
            committed = followers_watermark(self._leaders_watermark, self.log.end_offset)
        elif self.can_commit:
            committed = self.leading.watermark(self.durable_end)
        else:
            committed = self.high_watermark
        if committed > self.high_watermark:
            self.high_watermark = committed
        start_offset = self.log.start_offset
        if (
            self.high_watermark == self._settled_watermark
            and start_offset == self._settled_start
            and not self._news_for_readers
        ):
            return False
        self._settled_watermark, self._settled_start = self.high_watermark, start_offset
        self._news_for_readers = False
        return True

    @property
    def durable_end(self) -> Offset:
        """Below this, this replica's records survive what the topic asks them to survive."""
        return self.log.recovery_point if self.waits_for_disk else self.log.end_offset

    @property
    def low_watermark(self) -> Offset:
        """Below this, records are gone from every replica that is alive."""
        start_offset = self.log.start_offset
        return start_offset if self.leading is None else self.leading.low_watermark(start_offset)

    def news_for_followers(self) -> "tuple[bool, bool]":
        """Whether there is anything followers have not been told, and whether they should hear of it now. The watermark
        can wait for the next records, unless consumers read from followers. Part of settling."""
        told, log = self._told_followers, self.log
        self._told_followers = now_told = (log.end_offset, log.start_offset, self.high_watermark)
        if now_told == told:
            return False, False
        return True, now_told[:2] != told[:2] or self._surroundings.readers_may_follow

    # In-sync replicas.

    def isr_wish(self, now: Now) -> IsrWish | None:
        """What the controller should be asked for, if anything; one wish at a time."""
        if self.leading is None or self.deleted or self.failure is not None:
            return None
        return self.leading.wish(
            self.topic_id,
            self.topic_partition,
            self.partition_epoch,
            self.high_watermark,
            self.log.end_offset,
            now.monotonic_ms,
        )

    def isr_answered(self, wish: IsrWish, outcome: IsrOutcome, now: Now) -> None:
        """The controller's answer to a wish. What the metadata has overtaken meanwhile counts for nothing."""
        leading = self.leading
        if leading is None or leading.pending is not wish:
            return
        if outcome.error:
            leading.refused(outcome.error)
        elif outcome.leader_epoch == self.leader_epoch and outcome.partition_epoch >= self.partition_epoch:
            self._count_in_sync(outcome.isr)
            self.partition_epoch = outcome.partition_epoch
            self.in_sync = outcome.isr
            leading.granted(outcome.isr, now.monotonic_ms)
        self._see_who_commits()
        self.note_grown()
        self._surroundings.wants_isr_look(self)

    def isr_unanswered(self, wish: IsrWish) -> None:
        """Nobody knows what became of it: it is asked again, as it was."""
        if self.leading is not None and self.leading.pending is wish:
            self.leading.unanswered()
            self._surroundings.wants_isr_look(self)

    def look_at_followers(self, now: Now) -> None:
        """As time passes, and when brokers come and go: does somebody have to leave, may somebody join?"""
        if self.leading is None or not self.leading.followers or self.failure is not None:
            return
        end, now_ms = self.log.end_offset, now.monotonic_ms
        if self.leading.maybe_recount(end, now_ms) or self.start_is_watched:
            self._news_for_readers = self.start_is_watched
            self.note_grown()
        if self.leading.needs_a_wish(self.high_watermark, end, now_ms):
            self._surroundings.wants_isr_look(self)

    # Following.

    def follow(self, records: Bytes, leaders_watermark: Offset, leaders_start: Offset, now: Now) -> None:
        """What the leader sent for the offset where this log ends."""
        assert self.leader != self.me
        log = self.log
        if leaders_start < log.end_offset:
            # It has our last record, or would have said that we part.
            self._agreed_end = log.end_offset
        elif log.start_offset < log.end_offset and max(self.high_watermark, self._agreed_end) < log.end_offset:
            # The leader has nothing of what we have, and cannot tell us whether it ever had the same. It must not come
            # back when a crash makes us forget where we begin. (What is committed, or agreed on, it had; then we still
            # know of its producers.)
            self.start_over_at(log.end_offset)
        agrees = self._agreed_end == log.end_offset
        if len(records):
            try:
                log.append_as_follower(memoryview(records), now)
            except DiskFailed as error:
                self._disk_failed(error)
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            self.traffic.replication_bytes_in += len(records)
        if agrees:
            self._agreed_end = log.end_offset
        self._leaders_watermark = leaders_watermark
        if leaders_start > log.start_offset:
            log.advance_start_offset(min(leaders_start, log.end_offset))
        self.note_grown()

    def diverged(self, leaders_epoch: Epoch, leaders_end: Offset) -> None:
        """Our history parted from the leader's: drop what the leader does not have."""
        assert self.leader != self.me
        agreed = agreed_end(self.log, leaders_epoch, leaders_end)
        with self._disk():
            self.log.truncate_to(agreed)
        self._has_been_cut()
        # What is left ends with records of an epoch that the leader has up to there: so all before is the same as well.
        # (There may be more to cut. Then the next answer says so again.)
        agrees = self.log.latest_epoch == leaders_epoch and self.log.end_offset <= agreed
        self._agreed_end = self.log.end_offset if agrees else 0

    def start_over_at(self, offset: Offset) -> None:
        """The leader has nothing any more of what would come next here: begin anew where it begins."""
        assert self.leader != self.me
        with self._disk():
            self.log.truncate_fully_and_start_at(offset)
        self._has_been_cut()

    def _has_been_cut(self) -> None:
        # Only an unclean election, which was asked for, takes back what was committed.
        log = self.log
        self.high_watermark = max(log.start_offset, min(self.high_watermark, log.end_offset))
        self._leaders_watermark = self.high_watermark
        self.note_grown()

    # Reading.

    def read(self, offset: Offset, max_bytes: int, *, at_least_one: bool) -> LogSlice:
        """Committed records from `offset` on. Past the watermark but within the log there is nothing yet, which is no
        error."""
        if self.failure is not None or self.leader != self.me:
            self.check_reading()
        with storage_errors(self):
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

    @property
    def knows_its_watermark(self) -> bool:
        """A new leader may have less committed in its books than its predecessor told people; until its watermark has
        passed the start of its epoch, it had better not say where the end is."""
        return self.leading is None or self.high_watermark >= self.leading.epoch_start

    # Failing.

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
        before = self.log.end_offset
        self.log = self.log.reopened(now)
        if self.followers_hear and self.log.end_offset < before:
            # Followers may have what is missing here, and the same offsets must not be given twice in one epoch.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"records from {self.log.end_offset} to {before} are gone")
        if self.leading is not None and self.log.end_offset > before:
            # It could not even be opened when we were elected. Followers have to catch up with all of it to join.
            self.leading.epoch_start = self.log.end_offset
        if self.leading is not None and self.log.epochs.latest < self.leading.epoch:
            # Nothing was written in it yet, so the disk knows nothing of it. But followers are judged by it: of a later
            # epoch than our last they would be told nothing at all.
            self.log.epochs.assign(self.leading.epoch, self.log.end_offset)
        self.high_watermark = max(self.log.start_offset, min(self.high_watermark, self.log.end_offset))
        self.failure = None
        self.failure_told = False
        self.failed_full = False
        self.note_grown()

    @contextmanager
    def _disk(self) -> Iterator[None]:
        try:
            yield
        except DiskFailed as error:
            self._disk_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def note_disk_failed(self, error: DiskFailed) -> None:
        """For whoever watches over the disk. The partition is as it was."""
        self._surroundings.disk_failed(error)

    def _disk_failed(self, error: DiskFailed) -> None:
        self.note_disk_failed(error)
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
