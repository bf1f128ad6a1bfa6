"""How a handler may answer.

`Reply` now; `Later`, when a condition holds or a deadline comes; `Elsewhere`, by the active controller; `Silence` to
those who asked for none. Whatever it says, replies leave a connection in the order its requests came.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from klamm.broker.slices import Work
from klamm.ids import Now, Offset

if TYPE_CHECKING:
    from klamm.partition.partition import Partition


@dataclass(slots=True)
class Reply:
    response: object


@dataclass(slots=True)
class Committed:
    """All of these partitions have their high watermark at or above the offset."""

    targets: Sequence[tuple["Partition", Offset]]


@dataclass(slots=True)
class Durable:
    """All of these partitions have their own log on disk up to the offset."""

    targets: Sequence[tuple["Partition", Offset]]


@dataclass(slots=True)
class Changed:
    """One of these partitions or fetch sessions changed (a watermark, a start, a leader) and `holds()` is now true."""

    subjects: Sequence[object]
    holds: Callable[[], bool]


@dataclass(slots=True)
class Applied:
    """This node's image holds the metadata record at this offset."""

    offset: Offset


@dataclass(slots=True)
class Finished:
    """This work is done. It runs in slices between turns (`broker/slices.py`); its connection is not read meanwhile.

    If its deadline comes first, or its connection goes, the rest of it is never done.
    """

    work: Work


Condition: TypeAlias = Committed | Durable | Changed | Applied | Finished


@dataclass(slots=True)
class Wait:
    """What a work yields to go on when the condition holds, or at the deadline (monotonic)."""

    until: Condition
    deadline_ms: float


@dataclass(slots=True)
class Later:
    """Wait until `until` holds or `deadline_ms` (monotonic) comes; `then(now, in_time)` gives the response. It may also
    say what else to wait for, or `Silence`.

    It must not keep a view of the request: the bytes behind it are gone when the step ends.
    """

    until: Condition
    deadline_ms: float
    then: Callable[[Now, bool], object]


@dataclass(slots=True)
class Elsewhere:
    """Forward the request to the active controller, as it came."""


@dataclass(slots=True)
class Again:
    """Nothing has been done: offer the request again when there is room to keep it (`broker/keeping.py`)."""


@dataclass(slots=True)
class Silence:
    """Nothing is sent. With `close`, the connection ends, which is the only way to tell acks=0 of an error."""

    close: bool = False


Answer: TypeAlias = Reply | Later | Elsewhere | Again | Silence
