"""The segments of a log, in order. The last one is active: it takes what is appended until there is no room in it.

There is none for a batch that would make it larger than `segment.bytes`, that is younger than its first one by more
than `segment.ms` (less a jitter of its own, so that not all logs roll at once), that is too far away in offsets for
the index, or when an index is full.

A segment begins where the one before ends, even if the next record comes only after a gap that compaction left. So
recovery sees when something is missing.
"""

from bisect import bisect_right
from collections.abc import Iterator

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Offset
from klamm.log.files import Files
from klamm.log.names import SWAP
from klamm.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from klamm.log.settings import LogSettings
from klamm.records.crc import crc32c

_NOT_KNOWN = -1


class Segments:
    __slots__ = ("_bases", "_directory", "_files", "_roll_after_ms", "_settings", "active", "all", "unflushed")

    def __init__(
        self, files: Files, directory: str, settings: LogSettings, segments: list[Segment], unflushed: list[Segment]
    ) -> None:
        self._files = files
        self._directory = directory
        self._settings = settings
        self.all = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1] if segments else None
        self.unflushed = unflushed
        """Those that were active once and have not been flushed since."""
        self._roll_after_ms = _NOT_KNOWN

    def configure(self, settings: LogSettings) -> None:
        self._settings = settings
        self._roll_after_ms = _NOT_KNOWN
        if self.active is not None:
            self.active.configure(settings)

    # Rolling.

    def has_room(self, size: int, next_offset: Offset, max_timestamp: int, now_ms: int) -> bool:
        """Whether the active segment takes a batch of this size, time and end."""
        segment = self.active
        return (
            segment is not None
            and segment.log.size + size <= self._settings.segment_bytes
            and (max_timestamp if max_timestamp >= 0 else now_ms) <= self._roll_after_ms
            and next_offset <= segment.offset_limit
            and not segment.is_index_full
        )

    def make_room(
        self, size: int, end_offset: Offset, next_offset: Offset, max_timestamp: int, now_ms: int
    ) -> Segment | None:
        """Roll, or find out that there is no need to. Returns the new segment, which begins where the log ends."""
        if size > self._settings.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"a batch of {size} bytes is larger than segment.bytes={self._settings.segment_bytes}",
            )
        segment, rolled = self.active, None
        if segment is not None and segment.size and self._roll_after_ms == _NOT_KNOWN:
            self._roll_after_ms = self._roll_time_ms(segment, segment.first_timestamp, segment.touched_ms)
            if self.has_room(size, next_offset, max_timestamp, now_ms):
                return None
        if segment is None or segment.size or next_offset > segment.offset_limit:
            segment = rolled = self.roll(max(end_offset, next_offset - LARGEST_RELATIVE_OFFSET), now_ms)
        first_ms = max_timestamp if max_timestamp >= 0 else now_ms
        self._roll_after_ms = max(self._roll_time_ms(segment, first_ms, now_ms), first_ms)
        return rolled

    def roll(self, base_offset: Offset, now_ms: int) -> Segment:
        """Begin a new segment."""
        if self.active is not None:
            self.active.finish()
            self.unflushed.append(self.active)
        segment = Segment(self._files, self._directory, base_offset, self._settings, now_ms)
        self.all.append(segment)
        self._bases.append(base_offset)
        self.active = segment
        self._roll_after_ms = _NOT_KNOWN
        return segment

    def _roll_time_ms(self, segment: Segment, first_timestamp: int, otherwise_ms: int) -> int:
        """A segment whose first batch has this time takes no batch that is younger than the result."""
        settings = self._settings
        segment_ms = (
            min(settings.segment_ms, settings.max_compaction_lag_ms) if settings.compact else settings.segment_ms
        )
        jitter_ms = 0
        if settings.segment_jitter_ms:
            drawn = crc32c(f"{self._directory} {segment.base_offset}".encode())
            jitter_ms = drawn % min(settings.segment_jitter_ms, segment_ms)
        return (first_timestamp if first_timestamp >= 0 else otherwise_ms) + segment_ms - jitter_ms

    # Finding.

    def from_offset(self, offset: Offset, end_offset: Offset) -> Iterator[tuple[Segment, Offset]]:
        """From the segment on that may hold the offset, each with the offset before which all of it lies."""
        bases, last = self._bases, len(self._bases) - 1
        for number in range(max(bisect_right(bases, offset) - 1, 0), last + 1):
            yield self.all[number], bases[number + 1] if number < last else end_offset

    def closed(self) -> list[tuple[Segment, Offset]]:
        """All but the active one, each with the offset before which all of it lies."""
        return list(zip(self.all, self._bases[1:], strict=False))

    @property
    def first_offset(self) -> Offset | None:
        return self._bases[0] if self._bases else None

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    # Losing some.

    def remove_after(self, offset: Offset) -> bool:
        """Those that begin after the offset, the last one first, so that a crash leaves no hole. Whether any did."""
        keep = bisect_right(self._bases, offset)
        any_removed = keep < len(self.all)
        for segment in reversed(self.all[keep:]):
            segment.discard()
        del self.all[keep:], self._bases[keep:]
        self.active = self.all[-1] if self.all else None
        self.unflushed = [segment for segment in self.unflushed if segment in self.all[:-1]]
        self._roll_after_ms = _NOT_KNOWN
        return any_removed

    def delete_first(self, count: int, delay_ms: int) -> None:
        for segment in self.all[:count]:
            segment.discard(delay_ms)
        self.unflushed = [segment for segment in self.unflushed if segment not in self.all[:count]]
        del self.all[:count], self._bases[:count]

    def replace(self, old: list[Segment], new: Segment, delay_ms: int) -> None:
        """Put a compacted segment, whose bytes are on disk, in the place of those it was made from. After a crash at
        any point it either did not happen or is completed (`tidying.py`)."""
        new.move(SWAP)
        for segment in old:
            segment.discard(delay_ms)
        first = self.all.index(old[0])
        self.all[first : first + len(old)] = [new]
        self._bases[first : first + len(old)] = [new.base_offset]
        self.unflushed = [segment for segment in self.unflushed if segment not in old]
        new.move("")
