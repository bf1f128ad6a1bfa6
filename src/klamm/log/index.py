"""The sparse indexes of one segment, in Kafka's formats.

`.index` holds (relative offset, position) of some batches: the batch at `position` ends with that offset. `.timeindex`
holds (timestamp, relative offset): no record up to and including that offset is younger than the timestamp, and the
batch that ends with that offset has it. Both only grow, both are trimmed, and entries are at least
`index.interval.bytes` of log apart.

New entries wait in memory until there are enough of them for one write; a crash loses nothing, because recovery
rebuilds the indexes of whatever was not flushed. What a file claims is not believed before the log has confirmed it:
`segment.py` reads the header at the position. An index without entries is no file.
"""

from bisect import bisect_right
from contextlib import suppress
from struct import Struct
from typing import ClassVar, NamedTuple

from klamm.log.files import DiskFull, File, Files

PENDING_ENTRIES = 256
WINDOW_ENTRIES = 512
"""Read at once, and kept: who reads a log from its beginning asks for one entry shortly after the other."""


class Indexed(NamedTuple):
    offset: int
    position: int


class Timed(NamedTuple):
    timestamp: int
    offset: int


class Entries:
    """Pairs of numbers of a fixed width: those on disk, and behind them those that wait in memory."""

    __slots__ = ("_pending", "_window", "_window_start", "_written", "base_offset", "count", "file")

    pair: ClassVar[Struct]

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self.file: File = files.file(path)
        self.base_offset = base_offset
        self._pending = bytearray()
        self._written = self.count = self.file.size // self.pair.size
        self._window = b""
        self._window_start = 0
        """The number of the first entry in the window, which holds only entries that are on disk."""

    @property
    def size_bytes(self) -> int:
        return self.count * self.pair.size

    @property
    def has_pending(self) -> bool:
        return self.count > self._written

    @property
    def is_torn(self) -> bool:
        return self.file.size % self.pair.size != 0

    def write_pending(self) -> None:
        if self._pending:
            self.file.append(self._pending)
            self._pending = bytearray()
            self._written = self.count

    def reset(self) -> None:
        """Forget everything, also what is not a whole entry."""
        if self.file.size:
            self.file.truncate(0)
        self._pending = bytearray()
        self._written = self.count = 0
        self._window = b""

    def _append(self, first: int, second: int) -> None:
        self._pending += self.pair.pack(first, second)
        self.count += 1
        if self.count - self._written >= PENDING_ENTRIES:
            self._write_when_possible()

    def _write_when_possible(self) -> None:
        """The batch is in the log already; its entry can wait until there is room again."""
        with suppress(DiskFull):
            self.write_pending()

    def _entry(self, number: int) -> tuple[int, int]:
        size = self.pair.size
        at = (number - self._window_start) * size
        if 0 <= at < len(self._window):
            first, second = self.pair.unpack_from(self._window, at)
        elif number >= self._written:
            first, second = self.pair.unpack_from(self._pending, (number - self._written) * size)
        else:
            first, second = self.pair.unpack(self.file.read(number * size, size))
        return first, second

    def _search(self, target: int, field: int) -> int:
        """How many entries have this field, which must grow, at or below the target."""
        if not self._is_in_window(target, field):
            self._open_window(self._window_for(target, field))
        found = self._window_start + self._count_up_to(target, field, self._window)
        if found == self._written and self._pending:
            found += self._count_up_to(target, field, self._pending)
        return found

    def _is_in_window(self, target: int, field: int) -> bool:
        """Whether the last entry at or below the target stands in the window and another one follows it there."""
        window = self._window
        return (
            len(window) > 0
            and self.pair.unpack_from(window, 0)[field] <= target
            and self.pair.unpack_from(window, len(window) - self.pair.size)[field] > target
        )

    def _window_for(self, target: int, field: int) -> int:
        """Where a window begins in which the search ends: the next one, if somebody reads on, else by halving."""
        low, high = 0, self._written
        if self._window and self.pair.unpack_from(self._window, 0)[field] <= target:
            low = self._window_start
            following = low + len(self._window) // self.pair.size
            for number in (following, following + WINDOW_ENTRIES):
                if number < high:
                    if self._entry(number)[field] > target:
                        high = number
                        break
                    low = number
        while high - low > WINDOW_ENTRIES:
            middle = (low + high) // 2
            if self._entry(middle)[field] <= target:
                low = middle
            else:
                high = middle
        return low

    def _open_window(self, first: int) -> None:
        last = min(first + WINDOW_ENTRIES, self._written)
        self._window = self.file.read(first * self.pair.size, (last - first) * self.pair.size) if last > first else b""
        self._window_start = first

    def _count_up_to(self, target: int, field: int, entries: bytes | bytearray) -> int:
        size, unpack = self.pair.size, self.pair.unpack_from
        return bisect_right(
            range(len(entries) // size), target, key=lambda number: unpack(entries, number * size)[field]
        )

    def _keep(self, count: int) -> None:
        """Forget all entries but the first few."""
        if count >= self.count:
            return
        if count < self._written:
            self.file.truncate(count * self.pair.size)
            self._written = count
            self._window = b""
        del self._pending[(count - self._written) * self.pair.size :]
        self.count = count


_PLACE = Struct(">ii")
_pack_place = _PLACE.pack


class OffsetIndex(Entries):
    __slots__ = ()

    pair = _PLACE

    def append(self, last_offset: int, position: int) -> None:
        """For every large batch: what `_append` does, without the calls."""
        self._pending += _pack_place(last_offset - self.base_offset, position)
        self.count += 1
        if self.count - self._written >= PENDING_ENTRIES:
            self._write_when_possible()

    def at_or_before(self, offset: int) -> Indexed | None:
        """The last entry whose batch ends at or before the offset."""
        return self._numbered(self._search(offset - self.base_offset, 0))

    def at_or_before_position(self, position: int) -> Indexed | None:
        return self._numbered(self._search(position, 1))

    def last(self) -> Indexed | None:
        return self._numbered(self.count)

    def truncate(self, offset: int) -> None:
        """Keep the entries of batches that end before the offset."""
        self._keep(self._search(offset - self.base_offset - 1, 0))

    def _numbered(self, number: int) -> Indexed | None:
        if number == 0:
            return None
        relative, position = self._entry(number - 1)
        return Indexed(self.base_offset + relative, position)


class TimeIndex(Entries):
    __slots__ = ("_last",)

    pair = Struct(">qi")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        super().__init__(files, path, base_offset)
        self._last = self._numbered(self.count)

    def maybe_append(self, timestamp: int, last_offset: int) -> bool:
        """An entry says something only if it is younger than the one before."""
        if timestamp <= (self._last.timestamp if self._last is not None else -1):
            return False
        self._append(timestamp, last_offset - self.base_offset)
        self._last = Timed(timestamp, last_offset)
        return True

    def at_or_before(self, timestamp: int) -> Timed | None:
        return self._numbered(self._search(timestamp, 0))

    def last(self) -> Timed | None:
        return self._last

    def truncate(self, offset: int) -> None:
        """Keep the entries of batches that end before the offset."""
        self._keep(self._search(offset - self.base_offset - 1, 1))
        self._last = self._numbered(self.count)

    def reset(self) -> None:
        super().reset()
        self._last = None

    def _numbered(self, number: int) -> Timed | None:
        if number == 0:
            return None
        timestamp, relative = self._entry(number - 1)
        return Timed(timestamp, self.base_offset + relative)
