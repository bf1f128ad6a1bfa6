"""What `klamm consume` does while nothing comes: it looks whether there is no more, or something in the way.

Brokers that are gone may come back. Whoever follows has time: what is in the way is said once, and that it is over.
Whoever wants to be at the end sooner or later is told after half a minute that it cannot be reached.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from klamm.cli.consume_bounds import NoLeader
from klamm.cli.group_asking import Refused
from klamm.local.asking import NoAnswer

PATIENCE_SECONDS = 30.0


class Waiting:
    def __init__(
        self, stops_now: Callable[[], Mapping[int, int]], tell: Callable[[str], None], *, follows: bool
    ) -> None:
        self._stops_now = stops_now
        self._tell = tell
        self._follows = follows
        self._obstacle: Refused | NoAnswer | None = None
        self._has_told_of_group = False

    def look(self, quiet_seconds: float) -> Mapping[int, int] | None:
        """Where the partitions end now; None where somebody is away."""
        try:
            stops = self._stops_now()
        except (Refused, NoAnswer) as problem:
            if self._follows:
                self._note(problem)
            elif quiet_seconds > PATIENCE_SECONDS:
                raise
            return None
        self._maybe_go_on()
        return stops

    def heard(self, messages: Sequence[Any]) -> None:
        """Records of the partition that was waited for, or of any if nobody answered at all."""
        obstacle = self._obstacle
        if obstacle is None or not messages:
            return
        if not isinstance(obstacle, NoLeader) or any(each.partition() == obstacle.partition for each in messages):
            self._maybe_go_on()

    def tell_of_group(self, group: str, why: str | None) -> None:
        """It has not let us in; once."""
        if not self._has_told_of_group:
            self._has_told_of_group = True
            self._tell(f"waiting to be let into group {group}{f': {why}' if why else ''}")

    def _note(self, problem: Refused | NoAnswer) -> None:
        if self._obstacle is None:
            self._tell(
                f"{problem if isinstance(problem, Refused) else f'no broker answers: {problem}'}; waiting for it"
            )
        self._obstacle = problem

    def _maybe_go_on(self) -> None:
        if self._obstacle is not None:
            self._obstacle = None
            self._tell("it goes on")
