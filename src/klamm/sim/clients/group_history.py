"""What members of groups did, were told and read: the ground on which groups are judged.

Every commit has a name of its own, which travels as its metadata: whoever reads a committed offset can tell whose
commit it is. A commit that was not answered, or with an error that does not say, may have happened, now or later.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from klamm.ids import BrokerId, Offset
from klamm.sim.clients.history import Fate, Key

Spot = tuple[str, str, int]
"""A group, and a partition of a topic."""

SLOWEST = 0.85
"""No coordinator's clock runs so fast that its timeouts end before this share of them has passed."""

COVERED = (
    "rebalance",
    "static member returned",
    "zombie commit fenced",
    "commit of a former owner refused",
    "member fenced",
    "coordinator was loading",
)
"""What is rare here, and counted."""


@dataclass(slots=True, eq=False)
class Standing:
    """What a coordinator knows of a member, as far as that member can tell."""

    who: str
    group: str
    instance_id: str | None
    session_ms: float
    rebalance_ms: float
    is_classic: bool
    heard_ms: float = -inf
    """When it asked what was answered last: the coordinator has heard of it since."""
    revoked_ms: float = inf
    """While it is asked to give something up: when it asked what was answered last before that wish."""
    joins: int = 0
    """How often it has joined: a group that was empty in between may count its epochs anew."""

    def is_heard(self, asked_ms: float) -> None:
        self.heard_ms = max(self.heard_ms, asked_ms)

    def is_to_give_up(self, asked_ms: float) -> None:
        """Since when is not known, but for what was answered before."""
        self.revoked_ms = min(self.revoked_ms, self.heard_ms)
        self.is_heard(asked_ms)

    @property
    def until_ms(self) -> float:
        """Until then nobody may take away what it owns: by then its session may have ended, or its time to give up
        something that it was asked for, perhaps in an answer that never came."""
        wished_ms = min(self.revoked_ms, self.heard_ms)
        return min(self.heard_ms + SLOWEST * self.session_ms, wished_ms + SLOWEST * self.rebalance_ms)


@dataclass(slots=True)
class Commit:
    name: str
    who: str
    spot: Spot
    epoch: int
    """The generation, or member epoch, under which it was asked for."""
    offset: Offset
    sent_ms: float
    answered_ms: float = inf
    """From then on it is known to stand, because it was acknowledged or because somebody has read it."""
    fate: Fate = Fate.UNKNOWN


class Reading(NamedTuple):
    """A committed offset, as a coordinator told it."""

    reader: str
    spot: Spot
    offset: Offset
    """-1 if there is none."""
    name: str
    asked_ms: float
    was_behind: bool
    """Whether the broker could not know yet, when it was asked, who looks after the group."""


@dataclass(slots=True)
class GroupHistory:
    commits: dict[str, Commit] = field(default_factory=dict)
    of_spot: dict[Spot, list[Commit]] = field(default_factory=dict)
    reached: Counter[str] = field(default_factory=Counter)
    reads: int = 0
    is_behind: Callable[[BrokerId, str], bool] = lambda broker, group: False
    """Whether a broker has not heard yet who looks after a group now."""
    on_acknowledged: Callable[[Commit], None] = lambda commit: None
    on_refused: Callable[[Commit], None] = lambda commit: None
    on_read: Callable[[Reading, float], None] = lambda reading, now_ms: None
    on_told: Callable[[Standing, int, list[Spot], float], None] = lambda standing, epoch, spots, now_ms: None
    """A member was told what it owns, and under which epoch."""
    on_released: Callable[[Standing, list[Spot]], None] = lambda standing, spots: None
    """A member tells that it does not own these any more, or has heard that it does not."""
    on_replaced: Callable[[Standing], None] = lambda standing: None
    """A member wants the place of others with its instance id."""
    on_start: Callable[[Standing, Key, Offset], None] = lambda standing, key, offset: None
    """A member begins to read here."""
    on_handled: Callable[[Standing, Key, Offset], None] = lambda standing, key, offset: None

    def sent(self, commit: Commit) -> None:
        self.commits[commit.name] = commit
        self.of_spot.setdefault(commit.spot, []).append(commit)

    def was_acknowledged(self, commit: Commit, now_ms: float) -> None:
        commit.fate = Fate.ACKNOWLEDGED
        commit.answered_ms = min(commit.answered_ms, now_ms)
        self.on_acknowledged(commit)

    def was_refused(self, commit: Commit) -> None:
        commit.fate = Fate.REFUSED
        self.on_refused(commit)

    def was_read(self, reading: Reading, now_ms: float) -> None:
        self.reads += 1
        self.on_read(reading, now_ms)
