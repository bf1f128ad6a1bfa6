"""Fetch sessions (KIP-227): a client names its partitions once; later fetches speak only of what changed.

The work of a fetch follows what changed, not the size of the session. Each session keeps the partitions that may have
something to say in `active`; a partition that was looked at and had nothing leaves it, and comes back when its
watermark, start or leader changes, or when the client moves its position. For a follower it also comes back when the
log grows.

At most `slots` sessions are kept. A new one takes the place of one that nobody used for `eviction_ms`; if there is
none, the client is served without a session, which costs it bytes and nothing else. A broker that follows us has one
session here, the last it began, and that takes the place of any consumer's.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeAlias

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, BrokerId, Epoch, Now, Offset, Uuid
from klamm.partition.partition import Partition

NO_SESSION = 0
FIRST_EPOCH = 0
FINAL_EPOCH = -1

MOST_POSITIONS = 200_000
"""Of all sessions together: each is some hundred bytes of memory for a few bytes of request."""

Key: TypeAlias = tuple[str | Uuid, int]
"""How the client names a partition: topic name or topic id, and number."""


class Position:
    """Where one fetch, or one session, stands in one partition, and what the client was last told of it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "told_high_watermark",
        "told_start_offset",
        "topic",
    )

    def __init__(
        self,
        topic: str | Uuid,
        index: int,
        fetch_offset: Offset,
        max_bytes: int,
        current_leader_epoch: Epoch,
        last_fetched_epoch: Epoch,
    ) -> None:
        self.topic = topic
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.partition: Partition | None = None
        self.told_high_watermark: Offset = -1
        self.told_start_offset: Offset = -1

    @property
    def key(self) -> Key:
        return (self.topic, self.index)

    def moved_to(self, other: "Position") -> None:
        """The client asks for the same partition from another place, or says again where it is. If it is still there,
        or its leader has another epoch, it may not have taken in what it was told last."""
        if other.current_leader_epoch != self.current_leader_epoch or other.fetch_offset == self.fetch_offset:
            self.told_high_watermark = self.told_start_offset = -1
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch


class Session:
    __slots__ = ("active", "by_id", "epoch", "follower", "id", "is_open", "positions", "used_ms")

    def __init__(self, identity: int, by_id: bool, now: Now, follower: BrokerId = NO_BROKER) -> None:
        self.id = identity
        self.by_id = by_id
        self.follower = follower
        """Whose it is, if it is no consumer's."""
        self.epoch = FIRST_EPOCH + 1
        self.is_open = True
        self.positions: dict[Key, Position] = {}
        self.active: dict[Key, None] = {}
        self.used_ms = now.monotonic_ms

    def update(self, wanted: Iterable[Position], forgotten: Iterable[Key]) -> None:
        for position in wanted:
            known = self.positions.get(position.key)
            if known is None:
                self.positions[position.key] = position
            else:
                known.moved_to(position)
            self.active[position.key] = None
        for key in forgotten:
            self.active.pop(key, None)
            gone = self.positions.pop(key, None)
            if gone is not None:
                self.attach(gone, None)

    def attach(self, position: Position, partition: Partition | None) -> None:
        """Hear of changes of this partition from now on (a topic may have been recreated meanwhile)."""
        if position.partition is partition:
            return
        if position.partition is not None and self.is_open:
            self._listeners(position.partition).remove((self, position.key))
        position.partition = partition
        # A fetch may still wait for a session that was closed meanwhile; it hears of nothing more.
        if partition is not None and self.is_open:
            self._listeners(partition).append((self, position.key))

    def _listeners(self, partition: Partition) -> list[tuple["Session", Key]]:
        """The sessions that this partition tells what this session has to hear."""
        if self.follower != NO_BROKER:
            if partition.follower_sessions is None:
                partition.follower_sessions = []
            return partition.follower_sessions
        if partition.sessions is None:
            partition.sessions = []
        return partition.sessions

    def close(self) -> None:
        for position in self.positions.values():
            self.attach(position, None)
        self.is_open = False


class Sessions:
    def __init__(self, slots: int, eviction_ms: float, random: Random) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._random = random
        self._sessions: dict[int, Session] = {}
        """Least recently used first."""
        self._of_followers: dict[BrokerId, int] = {}
        self._held = 0
        """Positions of all sessions together."""

    def open(self, by_id: bool, wanted: Sequence[Position], now: Now, follower: BrokerId = NO_BROKER) -> Session | None:
        """A new session with these positions, or None if there is no room."""
        self.close(self._of_followers.get(follower, NO_SESSION))
        while self._held + len(wanted) > MOST_POSITIONS or len(self._sessions) >= self._slots:
            if not self._evict(now, for_follower=follower != NO_BROKER):
                return None
        identity = self._random.randint(1, 2**31 - 1)
        while identity in self._sessions:
            identity = self._random.randint(1, 2**31 - 1)
        session = self._sessions[identity] = Session(identity, by_id, now, follower)
        if follower != NO_BROKER:
            self._of_followers[follower] = identity
        self.update(session, wanted, ())
        return session

    def update(self, session: Session, wanted: Sequence[Position], forgotten: Iterable[Key]) -> None:
        """What the client wants from now on. If that is too much, the session ends, and the client begins anew."""
        self._held -= len(session.positions)
        session.update(wanted, forgotten)
        self._held += len(session.positions)
        if self._held > MOST_POSITIONS:
            self.close(session.id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

    def resume(self, identity: int, epoch: int, by_id: bool, now: Now, follower: BrokerId = NO_BROKER) -> Session:
        """The session of an incremental fetch, with its epoch moved on."""
        session = self._sessions.get(identity)
        if session is None or session.follower != follower:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        session.used_ms = now.monotonic_ms
        self._sessions[identity] = self._sessions.pop(identity)
        return session

    def close(self, identity: int) -> None:
        session = self._sessions.pop(identity, None)
        if session is not None:
            self._of_followers.pop(session.follower, None)
            self._held -= len(session.positions)
            session.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def _evict(self, now: Now, *, for_follower: bool) -> bool:
        for session in self._sessions.values():
            is_stale = now.monotonic_ms - session.used_ms >= self._eviction_ms
            if is_stale or (for_follower and session.follower == NO_BROKER):
                self.close(session.id)
                return True
            if not for_follower:
                # The others were used later than this one.
                return False
        return False
