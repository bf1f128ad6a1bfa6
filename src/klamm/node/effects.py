"""What a node wants done. `runtime/` does it for real, `sim/` on a simulated network, disk and clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from klamm.log.files import File


@dataclass(slots=True)
class Dial:
    """Connect to this address and say `Opened` or `Refused`. The number, which is ours and negative, names the
    connection from now on."""

    connection: int
    host: str
    port: int


@dataclass(slots=True)
class Send:
    """Send these pieces in this order: buffers, or regions of files (which keep their file open until sent)."""

    connection: int
    pieces: list[object]


@dataclass(slots=True)
class Pause:
    """Stop reading this connection; its last `left` frames of this step were not taken and come again later."""

    connection: int
    left: int


@dataclass(slots=True)
class Resume:
    """Read this connection again, first what was left when it was paused."""

    connection: int


@dataclass(slots=True)
class Close:
    """Close this connection once what was sent before has left."""

    connection: int


@dataclass(slots=True)
class Flush:
    """Bring these files to disk, then say `Flushed(token)`. One at a time: the next is asked for after that.

    Each group is of one owner, who counts on nothing of it before all of it is there. What fails in one is of no
    concern to the others."""

    token: int
    groups: Sequence[Sequence[File]]


@dataclass(slots=True)
class Wake:
    """Say `Woke` at this monotonic moment. Replaces the moment asked for before."""

    at_ms: float


@dataclass(slots=True)
class Yield:
    """Let those who are ready now have their turn, then say `Yielded`, at once if nobody is: there is something to tell
    that is better told once for all of them."""


@dataclass(slots=True)
class Serve:
    """From now on clients are answered: say so to whoever waits for it."""


@dataclass(slots=True)
class Stop:
    """Nothing keeps this node any more: close everything and end."""


Effect: TypeAlias = Dial | Send | Pause | Resume | Close | Flush | Wake | Yield | Serve | Stop
