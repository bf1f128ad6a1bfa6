"""What both kinds of group have in common, and what they share with the shard they live in."""

from random import Random
from typing import NamedTuple, Protocol

from klamm.coordinator.records import GroupRecord
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.timers import Timers
from klamm.coordinator.wishes import (
    BeatWish,
    CommitWish,
    JoinWish,
    LeaveWish,
    ListedGroup,
    OffsetsWish,
    SyncWish,
    Ticket,
    Verdict,
)
from klamm.ids import Now
from klamm.metadata.image import EMPTY, Image

CLASSIC, CONSUMER = "classic", "consumer"
CONSUMER_PROTOCOL_TYPE = "consumer"
"""What members of a classic group say who assign the partitions of topics."""


class TimerName(NamedTuple):
    """`kind` belongs to the kind of group; `member_id` is empty where the whole group is meant."""

    kind: str
    group_id: str
    member_id: str = ""


class Surroundings:
    """What the groups of one shard share."""

    __slots__ = ("image", "random", "settings", "timers")

    def __init__(self, settings: GroupSettings, random: Random, image: Image = EMPTY) -> None:
        self.settings = settings
        self.random = random
        self.image = image
        self.timers: Timers[TimerName] = Timers()


class Group(Protocol):
    """A group of either kind. Members of the classic protocol may be in both."""

    group_id: str
    kind: str

    def join(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict: ...
    def sync(self, wish: SyncWish, ticket: Ticket, now: Now) -> Verdict: ...
    def beat(self, wish: BeatWish, ticket: Ticket, now: Now) -> Verdict: ...
    def leave(self, wish: LeaveWish, ticket: Ticket, now: Now) -> Verdict: ...

    def rang(self, timer: TimerName, now: Now) -> Verdict:
        """A timer of this group is due."""
        ...

    def begin(self, now: Now) -> None:
        """The log has been replayed to its end, and this is the coordinator now: every member has its time again."""
        ...

    def check_commit(self, wish: CommitWish, now: Now) -> None:
        """Raise what the client has to hear if it may not commit offsets; else note that it is alive."""
        ...

    def check_reading(self, wish: OffsetsWish) -> None:
        """Raise what the client has to hear if it may not know the offsets."""
        ...

    def topics_read(self) -> frozenset[str] | None:
        """The topics its members read, whose offsets therefore are neither deleted nor grow old. None: nobody can tell,
        so it may be any."""
        ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def size_bytes(self) -> int:
        """What its members take, about (`coordinator/memory.py`)."""
        ...

    def bytes_of(self, member_id: str, instance_id: str | None) -> int:
        """What this member takes of that; 0 if there is none."""
        ...

    @property
    def member_count(self) -> int: ...

    @property
    def unused_since_ms(self) -> int | None:
        """The wall time from which on its offsets grow old, if that is later than their commits."""
        ...

    def tombstones(self) -> list[GroupRecord]:
        """What makes the group be gone, apart from its offsets."""
        ...

    def everybody_waiting(self) -> list[Ticket]:
        """Those whose answer depends on others."""
        ...

    def listed(self) -> ListedGroup: ...
