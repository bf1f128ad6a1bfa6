"""One segment: a file of batches, with its two sparse indexes.

Appending writes the bytes, now and then an index entry, and remembers where the most recent batches stand, so that
readers at the end of the log need neither index nor scan. Everybody else finds a batch by the index and a few headers.
`place_of` is the one question of readers: where does the first batch stand that ends after this offset?

Bytes that this process appended or recovered are known to be whole batches. Those of an earlier life, closed cleanly,
are walked once, when they are first read (`confirm`).
"""

from array import array
from bisect import bisect_right
from typing import NamedTuple

from klamm.log.files import File, Files
from klamm.log.index import Indexed, OffsetIndex, Timed, TimeIndex
from klamm.log.names import INDEX, LOG, TIME_INDEX, deleted_suffix, file_name
from klamm.log.settings import LogSettings
from klamm.log.walking import Damaged, headers, step_at, steps, time_of, walk_over
from klamm.records.batch import HEADER_BYTES, Batch, read_header

RECENT_BATCHES = 64
CURSORS = 8
LARGEST_RELATIVE_OFFSET = 2**31 - 1

_NOT_LOADED = -2


class Place(NamedTuple):
    """Where a batch begins: its byte, and an offset below which it holds nothing."""

    position: int
    offset: int


class Segment:
    __slots__ = (
        "_cursors",
        "_directory",
        "_files",
        "_index",
        "_index_interval_bytes",
        "_indexed_at",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_most_entries",
        "_most_times",
        "_recent_ends",
        "_recent_positions",
        "_recent_start",
        "_suffix",
        "_time_index",
        "_time_indexed",
        "_unconfirmed_from",
        "_unconfirmed_to",
        "base_offset",
        "is_index_full",
        "log",
        "offset_limit",
        "touched_ms",
    )

    def __init__(
        self, files: Files, directory: str, base_offset: int, settings: LogSettings, now_ms: int, *, suffix: str = ""
    ) -> None:
        self._files = files
        self._directory = directory
        self._suffix = suffix
        self.base_offset = base_offset
        self.log: File = files.file(self._path(LOG))
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self.configure(settings)
        self._indexed_at = 0
        self._time_indexed = -1
        """The youngest time that the time index was told by this process."""
        self.is_index_full = False
        self.offset_limit = base_offset + LARGEST_RELATIVE_OFFSET + 1
        """No batch may end after this offset, or the index could not name it."""
        self._max_timestamp = _NOT_LOADED if self.log.size else -1
        self._max_timestamp_offset = base_offset
        self.touched_ms = now_ms
        self._recent_ends = array("q")
        self._recent_positions = array("q")
        self._recent_start = base_offset
        self._cursors: dict[int, int] | None = None
        self._unconfirmed_from = 0
        self._unconfirmed_to = self.log.size

    def configure(self, settings: LogSettings) -> None:
        self._index_interval_bytes = settings.index_interval_bytes
        # One more entry has to fit, and the last word of the time index.
        self._most_entries = settings.segment_index_bytes // OffsetIndex.pair.size
        self._most_times = settings.segment_index_bytes // TimeIndex.pair.size - 1

    # Writing.

    def append(self, data: memoryview, next_offset: int, max_timestamp: int) -> None:
        """Append one batch, which ends before `next_offset`."""
        position = self.log.size
        self.log.append(data)
        self.note_batch(position, next_offset, max_timestamp)

    def note_batch(self, position: int, next_offset: int, max_timestamp: int) -> None:
        """A batch stands at this position, the last one of the segment by now."""
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = next_offset - 1
        if position - self._indexed_at > self._index_interval_bytes:
            index, time_index = self._index or self.index, self._time_index or self.time_index
            index.append(next_offset - 1, position)
            if self._max_timestamp > self._time_indexed:
                time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)
                self._time_indexed = self._max_timestamp
            self._indexed_at = position
            self.is_index_full = index.count >= self._most_entries or time_index.count >= self._most_times
        ends = self._recent_ends
        ends.append(next_offset)
        self._recent_positions.append(position)
        if len(ends) > 2 * RECENT_BATCHES:
            self._recent_start = ends[RECENT_BATCHES - 1]
            del ends[:RECENT_BATCHES]
            del self._recent_positions[:RECENT_BATCHES]

    def finish(self) -> None:
        """Nothing more will be appended: the time index gets its last word, both indexes go to their files."""
        self.time_index.maybe_append(self.max_timestamp, self._max_timestamp_offset)
        self.index.write_pending()
        self.time_index.write_pending()
        if self.time_index.file.size and not self.index.file.size:
            # Kafka's tools expect both files, or neither.
            self.index.file.append(b"")
        self._forget_recent()

    def rest(self) -> None:
        """Give back the memory that only a busy segment needs. It comes back by itself."""
        self._forget_recent()
        if not self.has_pending:
            self._close_indexes()
            self._index = self._time_index = None

    @property
    def has_pending(self) -> bool:
        """Whether index entries wait to be written."""
        return any(index is not None and index.has_pending for index in (self._index, self._time_index))

    def _forget_recent(self) -> None:
        if self._recent_ends:
            self._recent_start = self._recent_ends[-1]
            del self._recent_ends[:]
            del self._recent_positions[:]
        self._cursors = None

    # Finding.

    def place_of(self, offset: int) -> Place | None:
        """Where the first batch stands that ends after the offset; None if this segment has none."""
        ends = self._recent_ends
        if offset >= self._recent_start and ends:
            number = bisect_right(ends, offset)
            if number == len(ends):
                return None
            return Place(self._recent_positions[number], ends[number - 1] if number else self._recent_start)
        if self._cursors is not None:
            position = self._cursors.get(offset)
            if position is not None:
                return Place(position, offset) if position < self.log.size else None
        if offset <= self.base_offset:
            return Place(0, self.base_offset) if self.log.size else None
        entry = self._confirmed(self.index.at_or_before(offset))
        place, walked = None, 0
        for step in steps(self.log, entry.position if entry is not None else 0, self.base_offset):
            if step.next_offset > offset:
                place = Place(step.position, step.base_offset)
                break
            walked += 1
        if walked > self._index_interval_bytes // HEADER_BYTES + 2:
            # No interval holds so many batches: the index has lost entries.
            self.rebuild_indexes()
        return place

    def boundary(self, start: int, at_most: int) -> Place | None:
        """The end of a batch that begins at or after `start` and is `at_most` bytes long together with those before:
        the last such end, or one by an index entry that is at least half as far."""
        cut = start + at_most
        positions = self._recent_positions
        if positions and cut >= positions[0]:
            number = bisect_right(positions, cut) - 1
            if positions[number] > start:
                return Place(positions[number], self._recent_ends[number - 1] if number else self._recent_start)
        entry = self._confirmed(self.index.at_or_before_position(cut))
        found = None
        if entry is not None and entry.position > start:
            found = entry
            if entry.position - start >= at_most // 2:
                return found
        for step in steps(self.log, found.position if found is not None else start, self.base_offset):
            if step.end > cut:
                break
            found = Place(step.end, step.next_offset)
        return found

    def remember(self, place: Place) -> None:
        """A reader stopped here and will come back for what follows. The most recent places are remembered anyway."""
        if place.offset >= self._recent_start and self._recent_ends:
            return
        if self._cursors is None:
            self._cursors = {}
        elif len(self._cursors) >= CURSORS:
            del self._cursors[next(iter(self._cursors))]
        self._cursors[place.offset] = place.position

    def confirm(self, start: Place, end: Place) -> None:
        """Make sure that whole batches stand between these places, before they are served for the first time."""
        if end.position <= self._unconfirmed_from or start.position >= self._unconfirmed_to:
            return
        walk_over(self.log, start.position, start.offset, end.position, end.offset)
        if start.position <= self._unconfirmed_from:
            self._unconfirmed_from = end.position

    def place_of_time(self, timestamp: int) -> Place | None:
        """Where a search for the first record at or after this time begins; None if all records are older."""
        if self.max_timestamp < timestamp:
            return None
        entry = self._confirmed_time(self.time_index.at_or_before(timestamp))
        return self.place_of(entry.offset if entry is not None else self.base_offset)

    def first_offset_within(self, tail_bytes: int) -> int:
        """Where the first batch begins of those that stand in the last so many bytes; or the last of all batches."""
        start = self.log.size - tail_bytes
        offset = self.base_offset
        if start > 0:
            entry = self._confirmed(self.index.at_or_before_position(start))
            for step in steps(self.log, entry.position if entry is not None else 0, self.base_offset):
                offset = step.base_offset
                if step.position >= start:
                    break
        return offset

    # What it is.

    @property
    def size(self) -> int:
        return self.log.size

    @property
    def max_timestamp(self) -> int:
        """The youngest record's time, -1 if none has one."""
        if self._max_timestamp == _NOT_LOADED:
            last = self._last_time()
            if last is not None:
                self._max_timestamp, self._max_timestamp_offset = last
            else:
                self.rebuild_indexes()
        return self._max_timestamp

    @property
    def largest_timestamp_ms(self) -> int:
        """How old the segment is: by its records, or without their times by when it was last written or opened."""
        try:
            return self.max_timestamp if self.max_timestamp >= 0 else self.touched_ms
        except Damaged:
            return self.touched_ms

    @property
    def first_timestamp(self) -> int:
        """The time of its first batch, -1 if that has none."""
        return self._header_at(0).max_timestamp if self.log.size else -1

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self._files, self._path(INDEX), self.base_offset)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self._files, self._path(TIME_INDEX), self.base_offset)
        return self._time_index

    def files(self) -> list[File]:
        """Those that exist."""
        indexes = [index.file for index in (self.index, self.time_index) if index.file.size]
        return [self.log, *indexes]

    # Changing what is there.

    def load_end(self) -> Batch | None:
        """The last batch, and along the way what appending needs to know. Damaged if the end is torn."""
        time = self._last_time()
        last = self._confirmed(self.index.last())
        self._max_timestamp, self._max_timestamp_offset = time if time is not None else (-1, self.base_offset)
        self._indexed_at = position = last.position if last is not None else 0
        self._time_indexed = -1
        batch = None
        for _, batch in headers(self.log, position, self.base_offset):
            if time_of(batch) > self._max_timestamp:
                self._max_timestamp, self._max_timestamp_offset = batch.max_timestamp, batch.last_offset
        self._recent_start = batch.next_offset if batch is not None else self.base_offset
        return batch

    def truncate_to(self, offset: int) -> int:
        """Cut off the batch that holds this offset and all that follow; returns where the last one left ends."""
        place = self.place_of(offset)
        self._forget_recent()
        if place is not None:
            self.log.truncate(place.position)
            self.index.truncate(place.offset)
            self.time_index.truncate(place.offset)
            self._unconfirmed_from = min(self._unconfirmed_from, place.position)
            self._unconfirmed_to = min(self._unconfirmed_to, place.position)
            self.is_index_full = False
        last = self.load_end()
        return last.next_offset if last is not None else self.base_offset

    def rebuild_indexes(self) -> None:
        """From the log, which is always right."""
        self.reset_indexes()
        for position, batch in headers(self.log, 0, self.base_offset):
            if batch.next_offset > self.offset_limit:
                raise Damaged(self.log.path, position, f"{batch} is too far from {self.base_offset}")
            self.note_batch(position, batch.next_offset, time_of(batch))
        self._unconfirmed_from = self._unconfirmed_to
        self.finish()

    def reset_indexes(self) -> None:
        self._forget_recent()
        self.index.reset()
        self.time_index.reset()
        self._indexed_at = 0
        self._time_indexed = -1
        self._max_timestamp, self._max_timestamp_offset = -1, self.base_offset
        self._recent_start = self.base_offset

    def recovered(self, size: int) -> None:
        """All batches up to this size have been checked and noted; what follows is cut off."""
        self.log.truncate(size)
        self._unconfirmed_from = self._unconfirmed_to = size
        self.finish()

    def move(self, suffix: str) -> list[File]:
        """Rename its files; returns them."""
        files = self.files()
        for file in files:
            file.rename(file.path.removesuffix(self._suffix) + suffix)
        if self.index.file not in files:
            self.index.file.remove()
        self._suffix = suffix
        return files

    def discard(self, after_ms: int = 0) -> None:
        """It is no part of any log any more: its files are renamed now, and removed when there is time for it."""
        path = self.log.path
        if not self._files.exists(path):
            # Nothing was ever written to it, but perhaps an index.
            for file in (self.index.file, self.time_index.file):
                file.remove()
            return
        for file in self.move(self._suffix + deleted_suffix(path, self._files.exists)):
            file.close()
            self._files.discard(file.path, after_ms=after_ms)

    def remove_indexes(self) -> None:
        """Of a segment that is going to be something else."""
        for index in (self.index, self.time_index):
            index.file.remove()

    def close(self) -> None:
        self.log.close()
        self._close_indexes()

    def _close_indexes(self) -> None:
        for index in (self._index, self._time_index):
            if index is not None:
                index.file.close()

    def _confirmed(self, entry: Indexed | None) -> Place | None:
        """What an index entry says, if the batch there agrees. If it does not, the indexes are rebuilt, and None is as
        good."""
        if not self.index.is_torn:
            place = self.standing(entry) if entry is not None else None
            if entry is None or place is not None:
                return place
        self.rebuild_indexes()
        return None

    def _confirmed_time(self, entry: Timed | None) -> Timed | None:
        """The same for an entry of the time index."""
        if not self.time_index.is_torn:
            place = self.place_of(entry.offset) if entry is not None else None
            if entry is None or (place is not None and self._has_time(place, entry)):
                return entry
        self.rebuild_indexes()
        return None

    def _last_time(self) -> Timed | None:
        """The last entry of the time index, which knows at least the batch of the last entry of the other index."""
        self._confirmed_time(self.time_index.last())
        entry, time = self._confirmed(self.index.last()), self.time_index.last()
        if entry is not None:
            batch = self._header_at(entry.position)
            if time_of(batch) > (time.timestamp if time is not None else -1):
                self.rebuild_indexes()
        return self.time_index.last()

    def standing(self, entry: Indexed) -> Place | None:
        """Where the batch of this entry stands, if it does."""
        if not 0 <= entry.position < self.log.size:
            return None
        try:
            step = step_at(self.log, entry.position)
        except Damaged:
            return None
        return Place(step.position, step.base_offset) if step.next_offset - 1 == entry.offset else None

    def _has_time(self, place: Place, entry: Timed) -> bool:
        batch = self._header_at(place.position)
        return batch.max_timestamp == entry.timestamp and batch.last_offset == entry.offset

    def _header_at(self, position: int) -> Batch:
        data = self.log.read(position, HEADER_BYTES)
        if len(data) < HEADER_BYTES:
            raise Damaged(self.log.path, position, f"{len(data)} bytes are not a header", is_short=True)
        return read_header(data)

    def _path(self, kind: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, kind)}{self._suffix}"

    def __repr__(self) -> str:
        return f"<segment {self.base_offset} {self.log.size} bytes>"
