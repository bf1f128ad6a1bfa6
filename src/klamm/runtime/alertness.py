"""How a loop waits for what happens next: asleep, or for a moment awake.

Whoever sleeps is woken tens of microseconds late and comes back to cold caches, so that the next step takes twice as
long (docs/decisions/0008). Where events have followed one another closely, the loop therefore looks a few more times
before it sleeps. It does not where that would harm: when events are rare, when somebody else wants the processor (the
system took a while to give it back), and while something waits to be sent, because then the pace is the reader's.
"""

from collections.abc import Callable
from os import sched_yield
from time import monotonic
from typing import TypeAlias

Happened: TypeAlias = list[tuple[int, int]]
Poll: TypeAlias = Callable[[float | None], Happened]

AWAKE_S = 0.000_2
"""So long we look before we sleep."""

CLOSE_S = 0.000_4
"""Events that are usually so close are worth staying awake for."""

LONGEST_GAP_S = 0.002
"""A longer pause counts as this, so that a few close events make us awake again."""

SHARED_S = 0.000_02
"""If the processor comes back later than this, others need it too."""

MODEST_S = 0.001
"""So long we do not stay awake after others needed the processor."""


class Alertness:
    def __init__(self, clock: Callable[[], float] = monotonic, make_room: Callable[[], None] = sched_yield) -> None:
        self._clock = clock
        self._make_room = make_room
        self._usual_gap_s = LONGEST_GAP_S
        self._asleep_until_s = 0.0

    def wait(self, poll: Poll, timeout_s: float | None, *, may_stay_awake: bool) -> Happened:
        """What happens first; nothing when the time is over."""
        begin_s = self._clock()
        happened: Happened = []
        if may_stay_awake and self._usual_gap_s < CLOSE_S and begin_s >= self._asleep_until_s:
            awake_s = AWAKE_S if timeout_s is None else min(AWAKE_S, timeout_s)
            happened = self._look(poll, begin_s + awake_s)
            if timeout_s is not None:
                timeout_s = max(0.0, timeout_s - awake_s)
        if not happened:
            happened = poll(timeout_s)
        gap_s = min(self._clock() - begin_s, LONGEST_GAP_S)
        self._usual_gap_s += (gap_s - self._usual_gap_s) / 8
        return happened

    def _look(self, poll: Poll, until_s: float) -> Happened:
        while not (happened := poll(0.0)):
            looked_s = self._clock()
            if looked_s >= until_s or looked_s < self._asleep_until_s:
                break
            self._make_room()
            if self._clock() - looked_s > SHARED_S:
                # Once more, because something may have happened meanwhile; then we are modest.
                self._asleep_until_s = looked_s + MODEST_S
        return happened
