"""Deadlines with names. Setting one again moves it; what is taken off never rings."""

from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from klamm.ids import Now

Name = TypeVar("Name")

STALE = 64
"""A heap keeps deadlines that were moved until they are this many more than those that count."""


class Timers(Generic[Name]):
    def __init__(self) -> None:
        self._due: dict[Name, float] = {}
        self._heap: list[tuple[float, int, Name]] = []
        self._order = count()

    def set(self, name: Name, due_ms: float) -> None:
        before = self._due.get(name)
        self._due[name] = due_ms
        # A deadline that only moved away is looked at when the earlier one comes: heartbeats do nothing else.
        if before is None or due_ms < before:
            heappush(self._heap, (due_ms, next(self._order), name))
            self._tidy()

    def take_off(self, name: Name) -> None:
        self._due.pop(name, None)

    def is_set(self, name: Name) -> bool:
        return name in self._due

    def take_due(self, now: Now) -> Name | None:
        """The one that is due longest, if any is. It is off then."""
        self._settle()
        if not self._heap or self._heap[0][0] > now.monotonic_ms:
            return None
        name = heappop(self._heap)[2]
        del self._due[name]
        return name

    @property
    def next_due_ms(self) -> float | None:
        self._settle()
        return self._heap[0][0] if self._heap else None

    def _settle(self) -> None:
        """Bring the true next deadline to the top."""
        heap, due = self._heap, self._due
        while heap:
            due_ms, _, name = heap[0]
            really_ms = due.get(name)
            if really_ms == due_ms:
                return
            heappop(heap)
            if really_ms is not None and really_ms > due_ms:
                heappush(heap, (really_ms, next(self._order), name))

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._due) + STALE:
            self._heap = sorted((due_ms, next(self._order), name) for name, due_ms in self._due.items())

    def __len__(self) -> int:
        return len(self._due)
