"""What happens to a node. Each event is one argument of `Node.step`; nothing else reaches it.

A `memoryview` in an event is valid during that step only: the buffer behind it is used again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True)
class Opened:
    """Somebody connected to us, or a connection that we dialled (its number is negative) is there."""

    connection: int
    peer: str


@dataclass(slots=True)
class Refused:
    """A connection that we dialled did not come about. `nobody_listens`: the machine is there, the process is not."""

    connection: int
    nobody_listens: bool


@dataclass(slots=True)
class Received:
    """Whole frames of one connection, without their size prefix, in the order they were sent."""

    connection: int
    frames: Sequence[memoryview]


@dataclass(slots=True)
class Drained:
    """A paused connection has sent all that was queued for it."""

    connection: int


@dataclass(slots=True)
class Closed:
    """A connection is gone, whoever closed it."""

    connection: int


@dataclass(slots=True)
class Flushed:
    """The files of a `Flush` are on disk, but for the groups of these numbers: why nobody may believe so of them."""

    token: int
    failures: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Woke:
    """The moment asked for by the last `Wake` has come (or passed)."""


@dataclass(slots=True)
class Yielded:
    """Everybody who was ready when we said `Yield` has had their turn."""


Event: TypeAlias = Opened | Refused | Received | Drained | Closed | Flushed | Woke | Yielded
