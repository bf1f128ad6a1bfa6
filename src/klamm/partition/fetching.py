"""What to ask one leader for next: the partitions followed there, in one incremental session (KIP-227).

A fetch waits at the leader until there is something new, so nobody polls: the answer to one fetch is the reason for the
next, which names only the partitions whose position moved. A partition that begins to be followed while a fetch waits
does not wait with it: a second fetch is sent after the first, and the leader answers the first when it sees the second.
A partition that the leader has an error for steps aside for a while and comes back; if the leader cannot be reached,
all of it is begun anew.

A position tells how far our log reaches, the epoch of its last record, and under which leader epoch we ask. Where a
topic has `flush.messages=1` it tells of flushed bytes only, so the next fetch waits until what the last one brought is
on disk: a long poll that left earlier would hold the acknowledgement back.

Values only: whoever owns the connection makes a request of a `FetchAsk`, and `Fetched`s of the response.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId, Bytes, Epoch, Now, Offset, Uuid
from klamm.partition.partition import Partition

NO_SESSION = 0
FIRST_EPOCH = 0
LAST_EPOCH = 2**31 - 1

FIRST_BACKOFF_MS = 20.0
"""Mostly the leader has just not heard yet that it leads. From there it doubles up to `replica.fetch.backoff.ms`."""

SESSION_IS_GONE = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Key: TypeAlias = tuple[Uuid, int]


class FetchPosition(NamedTuple):
    topic_id: Uuid
    partition_index: int
    leader_epoch: Epoch
    fetch_offset: Offset
    last_fetched_epoch: Epoch
    start_offset: Offset


@dataclass(slots=True, eq=False)
class FetchAsk:
    """One fetch. In a session that has begun, `positions` are those that moved."""

    leader: BrokerId
    session_id: int
    session_epoch: int
    positions: list[FetchPosition]
    forgotten: list[Key]
    settings: "FetchSettings"
    broker_id: BrokerId
    broker_epoch: int


@dataclass(slots=True)
class Fetched:
    """What a leader answers for one partition. `records` may be a view that is valid during this call only."""

    topic_id: Uuid
    index: int
    error: ErrorCode
    high_watermark: Offset
    start_offset: Offset
    records: Bytes = b""
    diverging_epoch: Epoch = -1
    diverging_end: Offset = -1


@dataclass(frozen=True, slots=True)
class FetchSettings:
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20
    backoff_ms: float = 1_000.0


class _Followed:
    """One partition, and what the leader's session knows of it."""

    __slots__ = ("asked", "epoch", "errors", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.epoch = partition.leader_epoch
        self.asked: FetchPosition | None = None
        """The position in the session, or in a fetch under way that begins one."""
        self.errors = 0

    def position(self) -> FetchPosition:
        partition, log = self.partition, self.partition.log
        return FetchPosition(
            partition.topic_id,
            partition.topic_partition.partition,
            partition.leader_epoch,
            partition.durable_end,
            log.latest_epoch,
            log.start_offset,
        )


@dataclass(slots=True, eq=False)
class FetchPlan:
    leader: BrokerId
    settings: FetchSettings
    in_flight: list[FetchAsk] = field(default_factory=list)
    """In the order they were sent, which is the order of their answers."""
    _followed: dict[Key, _Followed] = field(default_factory=dict)
    _moved: dict[Key, None] = field(default_factory=dict)
    """Those whose position in the session may be another now."""
    _new: dict[Key, None] = field(default_factory=dict)
    """Those of them that are not in the session yet."""
    _forgotten: dict[Key, None] = field(default_factory=dict)
    """Those in the session that must not stay there."""
    _aside: dict[Key, float] = field(default_factory=dict)
    """Those that wait, and until when."""
    _next_due_ms: float | None = None
    _at_disk: dict[Key, None] = field(default_factory=dict)
    """Those with records that have to be on disk before the next fetch."""
    _session_id: int = NO_SESSION
    _session_epoch: int = FIRST_EPOCH
    _broker_epoch: int = -1
    """Ours, under which the session was begun."""
    _losses: int = 0
    _resume_ms: float = 0.0

    # Whom we follow.

    def add(self, partition: Partition) -> None:
        """From now on, or anew because the leader's epoch is another."""
        key = _key(partition)
        self.remove(partition)
        self._followed[key] = _Followed(partition)
        self._has_moved(key, partition)
        self._new[key] = None

    def remove(self, partition: Partition) -> None:
        key = _key(partition)
        followed = self._followed.pop(key, None)
        for among in (self._moved, self._new, self._aside, self._at_disk):
            among.pop(key, None)
        if followed is not None and followed.asked is not None:
            self._forgotten[key] = None

    def __len__(self) -> int:
        return len(self._followed)

    def __contains__(self, partition: Partition) -> bool:
        """Whether it is followed here, under the epoch it has now."""
        followed = self._followed.get(_key(partition))
        return followed is not None and followed.partition is partition and followed.epoch == partition.leader_epoch

    def set_aside(self, partition: Partition, until_ms: float) -> None:
        """Do not ask for this one until then."""
        key = _key(partition)
        followed = self._followed[key]
        if followed.asked is not None:
            self._forgotten[key] = None
            followed.asked = None
        self._moved.pop(key, None)
        self._new.pop(key, None)
        self._aside[key] = until_ms
        if self._next_due_ms is None or until_ms < self._next_due_ms:
            self._next_due_ms = until_ms

    def try_again(self) -> None:
        """Something about the leader changed: nobody has to wait any longer."""
        self._resume_ms = 0.0
        self._losses = 0
        self._come_back(list(self._aside))

    # Asking.

    def next_ask(self, broker_id: BrokerId, broker_epoch: int, now: Now) -> FetchAsk | None:
        """The fetch to send now, if there is one."""
        now_ms = now.monotonic_ms
        if now_ms < self._resume_ms:
            return None
        if self._next_due_ms is not None and self._next_due_ms <= now_ms:
            self._come_back([key for key, due_ms in self._aside.items() if due_ms <= now_ms])
        if self.in_flight and not self._may_follow_on:
            return None
        if len(self._followed) == len(self._aside) or self.waits_for_disk:
            return None
        if broker_epoch != self._broker_epoch and not self.in_flight:
            # The leader counts a partition for the life that named it last.
            self._begin_anew()
            self._broker_epoch = broker_epoch
        if self._session_epoch == FIRST_EPOCH:
            self._forgotten.clear()
            positions = [self._asked_anew(key) for key in self._followed if key not in self._aside]
        else:
            positions = self._moved_positions()
        self._moved.clear()
        self._new.clear()
        forgotten = [key for key in self._forgotten if key not in self._followed or key in self._aside]
        self._forgotten.clear()
        ask = FetchAsk(
            self.leader,
            self._session_id,
            self._session_epoch,
            positions,
            forgotten,
            self.settings,
            broker_id,
            broker_epoch,
        )
        if self._session_epoch != FIRST_EPOCH:
            self._session_epoch = 1 if self._session_epoch == LAST_EPOCH else self._session_epoch + 1
        self.in_flight.append(ask)
        return ask

    @property
    def _may_follow_on(self) -> bool:
        """Whether a second fetch may be sent after the one that waits: somebody new would wait with it for nothing."""
        return bool(self._new) and self._has_room_for_another

    @property
    def _has_room_for_another(self) -> bool:
        return len(self.in_flight) == 1 and self._session_epoch != FIRST_EPOCH

    @property
    def waits_for_disk(self) -> bool:
        """Whether something has to reach our disk before we may say that we have it."""
        while self._at_disk:
            key = next(iter(self._at_disk))
            partition = self._followed[key].partition
            if partition.durable_end < partition.log.end_offset and partition.failure is None:
                return True
            del self._at_disk[key]
        return False

    @property
    def next_deadline_ms(self) -> float | None:
        """When there may be something to ask for, if nothing else happens."""
        if not self._followed or self.waits_for_disk or (self.in_flight and not self._has_room_for_another):
            return None
        if not self.in_flight and len(self._followed) > len(self._aside):
            return self._resume_ms
        due_ms = self._next_due_ms
        return due_ms if due_ms is None else max(due_ms, self._resume_ms)

    def _asked_anew(self, key: Key) -> FetchPosition:
        followed = self._followed[key]
        followed.asked = followed.position()
        return followed.asked

    def _moved_positions(self) -> list[FetchPosition]:
        moved = []
        for key in self._moved:
            followed = self._followed[key]
            position = followed.position()
            if position != followed.asked:
                followed.asked = position
                moved.append(position)
        return moved

    def _come_back(self, keys: list[Key]) -> None:
        for key in keys:
            del self._aside[key]
            self._has_moved(key, self._followed[key].partition)
            self._new[key] = None
        self._next_due_ms = min(self._aside.values(), default=None)

    # Answers.

    def answered(self, ask: FetchAsk, session_id: int, error: ErrorCode, now: Now) -> bool:
        """The oldest fetch under way has an answer; whether what it says of partitions counts."""
        assert self.in_flight[0] is ask, "answers come in order"
        del self.in_flight[0]
        if ask.session_id != self._session_id:
            # It was sent after one whose session turned out to be gone.
            return False
        if error:
            self._begin_anew()
            if error not in SESSION_IS_GONE:
                self._back_off(now)
            return False
        self._losses = 0
        if session_id == NO_SESSION:
            # The leader has no room for a session: each fetch names everything.
            self._session_id, self._session_epoch = NO_SESSION, FIRST_EPOCH
        elif ask.session_epoch == FIRST_EPOCH:
            self._session_id, self._session_epoch = session_id, FIRST_EPOCH + 1
        return True

    def lost(self, ask: FetchAsk, now: Now) -> None:
        """No answer came, and none will."""
        self.in_flight.remove(ask)
        if ask.session_id == self._session_id:
            self._begin_anew()
            self._back_off(now)

    def take(self, fetched: Fetched, now: Now) -> Partition | None:
        """What the leader says of one partition; the partition, if its log was cut."""
        key = (fetched.topic_id, fetched.index)
        followed = self._followed.get(key)
        if followed is None or followed.asked is None:
            return None
        partition = followed.partition
        if not _is_still_there(followed):
            self._has_moved(key, partition)
            if _has_gone_on(followed) and not fetched.error and fetched.diverging_epoch < 0:
                # Two fetches were answered with the same records. What the second says besides is said only once.
                partition.follow(b"", fetched.high_watermark, fetched.start_offset, now)
            return None
        end_offset = partition.log.end_offset
        try:
            if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE and fetched.start_offset > end_offset:
                partition.start_over_at(fetched.start_offset)
                was_cut = True
            elif fetched.error:
                raise KafkaError(fetched.error)
            elif fetched.diverging_epoch >= 0:
                partition.diverged(fetched.diverging_epoch, fetched.diverging_end)
                was_cut = partition.log.end_offset != end_offset
            else:
                partition.follow(fetched.records, fetched.high_watermark, fetched.start_offset, now)
                was_cut = False
        except KafkaError:
            followed.errors += 1
            if partition.failure is not None:
                self.remove(partition)
            else:
                self.set_aside(partition, now.monotonic_ms + self._backoff_ms(followed.errors))
            return None
        followed.errors = 0
        self._has_moved(key, partition)
        return partition if was_cut else None

    def _has_moved(self, key: Key, partition: Partition) -> None:
        """It stands elsewhere than the leader's session knows, or may."""
        self._moved[key] = None
        if partition.waits_for_disk:
            self._at_disk[key] = None

    def _begin_anew(self) -> None:
        self._session_id, self._session_epoch = NO_SESSION, FIRST_EPOCH
        for followed in self._followed.values():
            followed.asked = None

    def _back_off(self, now: Now) -> None:
        self._losses += 1
        self._resume_ms = now.monotonic_ms + self._backoff_ms(self._losses)

    def _backoff_ms(self, times: int) -> float:
        return float(min(FIRST_BACKOFF_MS * 2 ** min(times - 1, 20), self.settings.backoff_ms))

    def __repr__(self) -> str:
        return (
            f"<plan for leader {self.leader} session={self._session_id}.{self._session_epoch} "
            f"partitions={len(self._followed)} aside={len(self._aside)}>"
        )


def _key(partition: Partition) -> Key:
    return (partition.topic_id, partition.topic_partition.partition)


def _is_still_there(followed: _Followed) -> bool:
    """Whether its log ends where it was asked for, and its leader's epoch is the same."""
    asked, partition = followed.asked, followed.partition
    assert asked is not None
    return asked.leader_epoch == partition.leader_epoch and asked.fetch_offset == partition.log.end_offset


def _has_gone_on(followed: _Followed) -> bool:
    """Whether it has got more from the same leader since it was asked for."""
    asked, partition = followed.asked, followed.partition
    assert asked is not None
    return asked.leader_epoch == partition.leader_epoch and asked.fetch_offset < partition.log.end_offset
