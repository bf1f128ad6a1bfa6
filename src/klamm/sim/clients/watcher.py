"""Somebody who watches groups: asks brokers for committed offsets, those who look after a group and others.

Whoever does not look after a group has to say so. In the end it asks for everything once more.
"""

from collections.abc import Callable
from typing import Any

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId
from klamm.sim.clients.client import Client, Desk
from klamm.sim.clients.group_history import GroupHistory, Reading
from klamm.sim.clients.group_requests import OFFSET_FETCH, coordinator_of, find_request, offset_request, offsets_of
from klamm.sim.clients.member import LOST_COORDINATOR, WAIT
from klamm.sim.promise import broken
from klamm.wire.apis import FIND_COORDINATOR

PAUSE_MS = 250.0
FIND_VERSION = 4
VERSIONS = (2, 5, 7, 8, 9)
"""Of OffsetFetch, in which one may ask for everything; later ones know topics by id."""
ANYBODY = 0.3


class Watcher(Client):
    def __init__(self, desk: Desk, history: GroupHistory, topics: dict[str, str]) -> None:
        super().__init__(desk)
        self._history = history
        self._of_group = topics
        """The topic that each group reads."""
        self._coordinators: dict[str, BrokerId] = {}

    def watch(self) -> None:
        self.later(self.chance.expovariate(1.0 / PAUSE_MS), self.watch)
        group = self.chance.choice(sorted(self._of_group))
        broker = self._coordinators.get(group, NO_BROKER)
        if broker == NO_BROKER:
            self._find(group)
        else:
            self._ask(group, self.any_broker() if self.chance.random() < ANYBODY else broker, lambda is_told: None)

    def ask_in_the_end(self, group: str, then: Callable[[], None]) -> None:
        """Until somebody answers."""

        def told(is_told: bool) -> None:
            if is_told:
                then()
            else:
                self.later(100.0, lambda: self.ask_in_the_end(group, then))

        broker = self._coordinators.get(group, NO_BROKER)
        if broker == NO_BROKER:
            self._find(group)
            told(False)
        else:
            self._ask(group, broker, told)

    def _find(self, group: str) -> None:
        def found(answer: Any) -> None:
            if answer is not None:
                self._coordinators[group] = coordinator_of(FIND_VERSION, answer)

        self.ask(self.any_broker(), FIND_COORDINATOR, FIND_VERSION, find_request(FIND_VERSION, group), found)

    def _ask(self, group: str, broker: BrokerId, then: Callable[[bool], None]) -> None:
        version = self.chance.choice(VERSIONS)
        asked_ms, was_behind = self.world.now_ms, self._history.is_behind(broker, group)
        known = self._known(group)

        def heard(answer: Any) -> None:
            code, offsets = (None, {}) if answer is None else offsets_of(version, answer)
            if code is not ErrorCode.NONE:
                if code is not None and code not in LOST_COORDINATOR | WAIT:
                    broken("I29", f"{self.name} is answered {code.name} to OffsetFetch")
                if self._coordinators.get(group) == broker:
                    self._coordinators[group] = NO_BROKER
                then(False)
                return
            # What is not told is not committed.
            for index in sorted(known | offsets.keys()):
                offset, name = offsets.get(index, (-1, ""))
                spot = (group, self._of_group[group], index)
                self._history.was_read(Reading(self.name, spot, offset, name, asked_ms, was_behind), self.world.now_ms)
            then(True)

        where = (self._of_group[group], bytes(16))
        self.ask(broker, OFFSET_FETCH, version, offset_request(version, group, where, None), heard)

    def _known(self, group: str) -> set[int]:
        """Partitions of which there are commits."""
        return {index for name, _, index in self._history.of_spot if name == group}
