"""Pages that cost something, made once for all who ask within the same moment.

A page of ten thousand partitions is 20 MiB and half a second's work. Who asks while it is being made reads along: the
first who needs a piece that is not there has it made, and it is there for everybody. A large page is given to who comes
within a second as well; a small one is made anew, and says how things are now. Pages of which somebody still reads stay
in memory, so there are a few at a time; whoever wants one more is told to come back.
"""

from collections.abc import Callable, Iterator
from weakref import WeakSet

SHARED_MS = 1_000.0
"""So long after it was begun a page is given to others."""
CHEAP_PIECES = 50
"""A page of no more is made in some hundredths of a second."""
MOST_PAGES = 4
"""Of different age, or of different queries, that somebody reads at the same time."""
MOST_BYTES_AT_ONCE = 256 << 10
"""Of what is made already, to one reader in one go."""


class SharedPage:
    def __init__(self, pieces: Iterator[str], begun_ms: float) -> None:
        self.begun_ms = begun_ms
        self.made: list[bytes] = []
        self.is_whole = False
        self.problem: Exception | None = None
        """Why there will be no more of it. Half a page must not look like a whole one to anybody."""
        self._pieces = pieces

    def make_piece(self) -> None:
        if self.problem is not None:
            raise self.problem
        try:
            text = next(self._pieces, None)
            if text:
                self.made.append(text.encode())
        except Exception as problem:
            self.problem = problem
            raise
        self.is_whole = text is None

    @property
    def is_for_others(self) -> bool:
        return self.problem is None and (not self.is_whole or len(self.made) > CHEAP_PIECES)


class Reader:
    """One who reads a page: an iterator of its pieces, some of them empty."""

    def __init__(self, page: SharedPage) -> None:
        self.page = page
        self._position = 0

    @property
    def has_more(self) -> bool:
        """Whether there is something for it, the end for one, that need not be made first."""
        return self._position < len(self.page.made) or self.page.is_whole

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> bytes:
        page = self.page
        if not self.has_more:
            page.make_piece()
        if self._position == len(page.made):
            if page.is_whole:
                raise StopIteration
            return b""
        first, size = self._position, 0
        while self._position < len(page.made) and size < MOST_BYTES_AT_ONCE:
            size += len(page.made[self._position])
            self._position += 1
        return b"".join(page.made[first : self._position])


class RecentPages:
    def __init__(self) -> None:
        self._latest: dict[str, SharedPage] = {}
        """By query, of the last moment."""
        self._readers: WeakSet[Reader] = WeakSet()

    def reader(self, query: str, make: Callable[[], Iterator[str]], now_ms: float) -> Reader | None:
        """None where there are too many."""
        self.forget_before(now_ms - SHARED_MS)
        page = self._latest.get(query)
        if page is None or not page.is_for_others:
            if len({reader.page for reader in self._readers}) >= MOST_PAGES:
                return None
            page = self._latest[query] = SharedPage(make(), now_ms)
        reader = Reader(page)
        self._readers.add(reader)
        return reader

    def forget_before(self, begun_ms: float) -> None:
        """Who still reads them keeps them."""
        self._latest = {query: page for query, page in self._latest.items() if page.begun_ms > begun_ms}

    @property
    def is_empty(self) -> bool:
        return not self._latest
