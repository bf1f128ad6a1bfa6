"""Housekeeping in slices: what has to be done now and then, never for long.

A chore is a generator: each `next` does a small piece and says how many milliseconds it can wait for the next one. One
slice is done per wake-up, so requests come in between; a chore that is done sleeps for its interval.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from klamm.facts import Tell
from klamm.ids import Now
from klamm.node.facts import ChoreFailed

Chore: TypeAlias = Callable[[Now], Iterator[float]]


@dataclass(slots=True)
class _Entry:
    chore: Chore
    interval_ms: Callable[[], float]
    due_ms: float
    under_way: Iterator[float] | None = None


class Chores:
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._entries: list[_Entry] = []
        self.next_due_ms: float | None = None

    def add(self, chore: Chore, interval_ms: float | Callable[[], float], now: Now) -> None:
        asked = interval_ms if callable(interval_ms) else lambda: interval_ms
        self._entries.append(_Entry(chore, asked, now.monotonic_ms + asked()))
        self._look_ahead()

    def run_slice(self, now: Now) -> None:
        """One slice of the chore that has been due longest, if any is due."""
        due = [entry for entry in self._entries if entry.due_ms <= now.monotonic_ms]
        if not due:
            return
        entry = min(due, key=lambda each: each.due_ms)
        if entry.under_way is None:
            entry.under_way = entry.chore(now)
        try:
            entry.due_ms = now.monotonic_ms + next(entry.under_way)
        except StopIteration:
            self._done(entry, now)
        except AssertionError:
            raise
        except Exception as error:
            # Mostly a disk that refuses. Whatever it is, serving goes on, and it is tried again.
            self._tell(ChoreFailed(f"{type(error).__name__}: {error}"))
            self._done(entry, now)
        self._look_ahead()

    def _done(self, entry: _Entry, now: Now) -> None:
        entry.under_way = None
        entry.due_ms = now.monotonic_ms + entry.interval_ms()

    def _look_ahead(self) -> None:
        self.next_due_ms = min((entry.due_ms for entry in self._entries), default=None)
