"""A partition watched while things happen to it: who leads, who is in sync, where each replica's log ends.

One look every twentieth of a second. A look that nobody answers leaves a gap; the looks before and after it stay.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from klamm.lab.stage import Stage

LOOK_EVERY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Look:
    seconds: float
    leader: int
    in_sync: tuple[int, ...]
    log_ends: dict[int, int]


class Watch:
    """`with Watch(stage, topic, brokers) as watch: ...`, and then `watch.looks`."""

    def __init__(self, stage: Stage, topic: str, brokers: Sequence[int]) -> None:
        self._stage, self._topic, self._brokers = stage, topic, brokers
        self.looks: list[Look] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_SECONDS):
            ends = {broker: self._stage.log_end(broker, self._topic) for broker in self._brokers}
            for place in self._stage.places(self._topic):
                self.looks.append(Look(self._stage.seconds(), place.leader, place.in_sync, ends))
