"""Time, chance and what is going to happen: one heap of moments, drawn from a seed.

Whatever happens is noted, and the notes are hashed: two runs of one seed that differ anywhere have different hashes.
Each concern draws from a stream of its own (`chance`), so that a run with fewer faults has the same workload.
"""

import hashlib
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from klamm.sim.promise import broken

KEPT_LINES = 400
MOST_AT_ONCE = 20_000
"""More events than this at one moment, and nobody waits for anything any more."""


class World:
    def __init__(self, seed: int, *, keeps_all: bool = False) -> None:
        self.seed = seed
        self.now_ms = 0.0
        self.events = 0
        self.story: deque[str] = deque(maxlen=None if keeps_all else KEPT_LINES)
        self.aside: Callable[[], str] | None = None
        """What stands beside each line of the story, and is not part of the hash."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def chance(self, concern: str) -> Random:
        return Random(f"{self.seed} {concern}")

    def at(self, at_ms: float, call: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._heap, (at_ms if at_ms > self.now_ms else self.now_ms, self._order, call))

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, call)

    def run_until(self, end_ms: float) -> None:
        """Let everything happen that is due before this moment."""
        heap = self._heap
        at_once = 0
        while heap and heap[0][0] < end_ms:
            at_ms, _, call = heappop(heap)
            at_once = at_once + 1 if at_ms == self.now_ms else 0
            if at_once > MOST_AT_ONCE:
                broken("I30", f"{MOST_AT_ONCE} events, and the time is still {at_ms}")
            self.now_ms = at_ms
            self.events += 1
            call()
        self.now_ms = max(self.now_ms, end_ms)

    def note(self, what: str) -> None:
        """Part of the run's hash, and not of its story: there are too many of these to read."""
        self._hash.update(f"{self.now_ms!r} {what}\n".encode())

    def tell(self, line: str) -> None:
        """Part of both."""
        self.note(line)
        aside = "" if self.aside is None else self.aside()
        self.story.append(f"{self.now_ms / 1_000:10.4f} {aside}{line}")

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
