"""What a group has handled: every record that is committed, at least once, and none is passed over.

I28, I29. A member begins where the group has committed, and what lies before that has been handled by somebody. Once
all is mended, every partition has an owner, and everything that stands in it was handled.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from klamm.ids import Offset
from klamm.sim.clients.group_history import GroupHistory, Standing
from klamm.sim.clients.history import Key
from klamm.sim.promise import broken


@dataclass(slots=True)
class Handled:
    """Everything below `up_to`, and some beyond it."""

    up_to: Offset = 0
    beyond: set[Offset] = field(default_factory=set)

    def add(self, offset: Offset) -> None:
        if offset >= self.up_to:
            self.beyond.add(offset)
            while self.up_to in self.beyond:
                self.beyond.remove(self.up_to)
                self.up_to += 1


class GroupProgress:
    def __init__(self, history: GroupHistory, may_lose: Container[Key]) -> None:
        self._may_lose = may_lose
        self._handled: dict[tuple[str, Key], Handled] = {}
        history.on_start = self.start
        history.on_handled = self.handled

    def start(self, standing: Standing, key: Key, offset: Offset) -> None:
        up_to = self.up_to(standing.group, key)
        if offset > up_to and key not in self._may_lose:
            broken("I28", f"{standing.who} begins at {offset} of partition {key[1]}, and {up_to} was not handled yet")

    def handled(self, standing: Standing, key: Key, offset: Offset) -> None:
        self._handled.setdefault((standing.group, key), Handled()).add(offset)

    def up_to(self, group: str, key: Key) -> Offset:
        handled = self._handled.get((group, key))
        return 0 if handled is None else handled.up_to

    def has_all(self, group: str, key: Key, end: Offset) -> bool:
        return key in self._may_lose or self.up_to(group, key) >= end
