"""Long work in slices: a step stays short, however much one request asks for.

A work is a generator. Each `yield` ends a slice of about a millisecond, and what is sent into it is the time of the
next one. After every turn of the loop (`Yielded`) one slice is done, and works take turns, so nobody waits for a
stranger's long work: neither other connections nor other works. A work that yields a `Wait` goes on when its condition
holds.

A work sees the node change between its slices. One that reads should hold on to a value (the image); one that
writes must check again after each `yield` what it relies on.
"""

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from klamm.ids import Now

if TYPE_CHECKING:
    from klamm.broker.answer import Wait

Work: TypeAlias = "Generator[Wait | None, Now, None]"
Park: TypeAlias = "Callable[[Wait, Callable[[], None], int], None]"
"""Let a work of this connection wait: the function is to be called when it can go on."""

OF_THIS_NODE = 0
"""In the place of a connection, for work that nobody asked for over one."""


def _never() -> bool:
    return False


@dataclass(slots=True)
class _Entry:
    work: Work
    done: Callable[[Exception | None, Now], None]
    is_abandoned: Callable[[], bool]
    connection: int
    is_begun: bool = False


class Slices:
    def __init__(self, park: Park) -> None:
        self._park = park
        self._entries: deque[_Entry] = deque()

    def __bool__(self) -> bool:
        """Whether a slice can be done now."""
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(
        self,
        work: Work,
        done: Callable[[Exception | None, Now], None],
        is_abandoned: Callable[[], bool] = _never,
        connection: int = OF_THIS_NODE,
        *,
        is_begun: bool = False,
    ) -> None:
        """Do this work from the next turn on; `done` hears that it ended, or the exception that ended it. Work that
        nobody waits for any more (`is_abandoned`, or its connection is closed) is given up without a word. Of
        work that is begun the first slice has been done."""
        self._entries.append(_Entry(work, done, is_abandoned, connection, is_begun))

    def run_slice(self, now: Now) -> None:
        """One slice of the work whose turn it is."""
        while self._entries:
            entry = self._entries.popleft()
            if entry.is_abandoned():
                entry.work.close()
                continue
            self._run(entry, now)
            return

    def _run(self, entry: _Entry, now: Now) -> None:
        try:
            if entry.is_begun:
                wait = entry.work.send(now)
            else:
                entry.is_begun = True
                wait = next(entry.work)
        except StopIteration:
            entry.done(None, now)
        except AssertionError:
            raise
        except Exception as error:
            entry.done(error, now)
        else:
            if wait is None:
                self._entries.append(entry)
            else:
                self._park(wait, lambda: self._entries.append(entry), entry.connection)
