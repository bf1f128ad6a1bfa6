"""What `klamm consume` does while nothing comes: it looks whether there is no more, or something in the way.

Brokers that are gone may come back. Whoever follows has time: what is in the way is said once, and that it is over.
Whoever wants to be at the end sooner or later is told after half a minute that it cannot be reached; so is whoever
follows what does not come back, as a topic that was deleted.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from klamm.cli.consume_bounds import NoLeader
from klamm.cli.group_asking import Refused
from klamm.local.asking import NoAnswer

PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.3
T = TypeVar("T")


def once_led(ask: Callable[[], T], tell: Callable[[str], None]) -> T:
    """What is known of a topic as soon as all of its partitions have leaders, for whoever has time. Where nobody has
    answered yet, an address may be wrong."""
    told = None
    while True:
        try:
            found = ask()
        except (NoLeader, NoAnswer) as problem:
            if isinstance(problem, NoAnswer) and told is None:
                raise
            if _in_words(problem) != told:
                told = _in_words(problem)
                tell(f"{told}; waiting for it")
            time.sleep(PAUSE_SECONDS)
        else:
            if told is not None:
                tell("it goes on")
            return found


class Waiting:
    def __init__(
        self,
        stops_now: Callable[[], Mapping[int, int]],
        tell: Callable[[str], None],
        is_in: Callable[[], bool] = lambda: True,
        *,
        follows: bool,
    ) -> None:
        """`is_in`: whether a group has let us in, for whoever is to be in one."""
        self._stops_now = stops_now
        self._tell = tell
        self._is_in = is_in
        self._follows = follows
        self._obstacle: Refused | NoAnswer | None = None
        self._refused_since = 0.0
        """After how many quiet seconds it was refused first, of those that do not end by waiting."""
        self._has_told_of_group = False
        self._is_outside: str | None = None
        """The group that we were told to have to wait for."""

    def look(self, quiet_seconds: float) -> Mapping[int, int] | None:
        """Where the partitions end now; None where somebody is away."""
        try:
            stops = self._stops_now()
        except (Refused, NoAnswer) as problem:
            if self._is_for_good(problem, quiet_seconds):
                raise
            if self._follows:
                self._note(problem)
            return None
        self._maybe_go_on()
        return stops

    def heard(self, messages: Sequence[Any]) -> None:
        """Records of the partition that was waited for, or of any if nobody answered at all."""
        if messages:
            self.maybe_tell_of_entry()
        obstacle = self._obstacle
        if obstacle is None or not messages:
            return
        if not isinstance(obstacle, NoLeader) or any(each.partition() == obstacle.partition for each in messages):
            self._maybe_go_on()

    def tell_of_group(self, group: str, ask_why: Callable[[], str]) -> None:
        """It has not let us in; once, and once more after an outage: we are there ourselves as who we were before."""
        if not self._has_told_of_group:
            self._has_told_of_group, self._is_outside = True, group
            self._tell(f"waiting to join group {group}: {ask_why()}")

    def maybe_tell_of_entry(self) -> None:
        """Whoever was told to have to wait wants to know that it is over."""
        if self._is_outside is not None and self._is_in():
            self._tell(f"joined group {self._is_outside}")
            self._is_outside = None

    def _is_for_good(self, problem: Refused | NoAnswer, quiet_seconds: float) -> bool:
        if not self._follows:
            return quiet_seconds > PATIENCE_SECONDS
        if isinstance(problem, NoLeader | NoAnswer):
            return False
        if self._obstacle is None or isinstance(self._obstacle, NoLeader | NoAnswer):
            self._refused_since = quiet_seconds
        self._refused_since = min(self._refused_since, quiet_seconds)
        return quiet_seconds > self._refused_since + PATIENCE_SECONDS

    def _note(self, problem: Refused | NoAnswer) -> None:
        if self._obstacle is None or _in_words(problem) != _in_words(self._obstacle):
            self._tell(f"{_in_words(problem)}; waiting for it")
        self._obstacle = problem

    def _maybe_go_on(self) -> None:
        if self._obstacle is None:
            return
        self._obstacle = None
        if self._is_in():
            self._tell("it goes on")
        else:
            self._tell("what was in the way is over")
            self._has_told_of_group = False


def _in_words(problem: Refused | NoAnswer) -> str:
    return str(problem) if isinstance(problem, Refused) else f"no broker answers: {problem}"
