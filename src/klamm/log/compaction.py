"""Compaction: of every key, the log keeps the last record.

It works on closed segments below the high watermark, in two passes. The first reads the dirty part, what was written
since the last compaction, and notes the last offset of each key; it stops when so many keys are known as memory allows.
The second copies all segments up to there without the records that are superseded, several small segments into one,
and puts each copy in the place of its originals. Readers see the old segment or the new one, never something in
between, and every record that stays keeps its offset.

The work comes in slices, `step(budget_bytes)`, for a node must not stop for long. Before a copy may replace its
originals it has to be on disk: then `to_flush` names its files, and the owner calls `flushed` when they are. Whoever
truncates the log abandons its compaction.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, NamedTuple

from klamm.ids import Offset
from klamm.log.cleaning import Cleaner, LastOffsets
from klamm.log.files import DiskFailed, File, Files
from klamm.log.names import CLEANED
from klamm.log.segment import LARGEST_RELATIVE_OFFSET, Segment
from klamm.log.settings import FOREVER_MS, LogSettings
from klamm.log.walking import Damaged, time_of, whole_batches
from klamm.records.batch import InvalidBatch, read_header

if TYPE_CHECKING:
    from klamm.log.log import Log

MAX_KEYS = 2**18
"""About 40 MB of hashes and offsets."""


class Dirty(NamedTuple):
    """The part of a log that is worth compacting."""

    first_offset: Offset
    segments: list[tuple[Segment, Offset]]
    """All that may be touched, also the clean ones before it, each with the offset where it ends."""
    ratio: float


def dirty_range(log: "Log", now_ms: int, first_dirty_offset: Offset, up_to_offset: Offset) -> Dirty | None:
    """None unless there is enough (`min.cleanable.dirty.ratio`) or it waits too long (`max.compaction.lag.ms`)."""
    settings = log.settings
    if not settings.compact:
        return None
    if not log.start_offset <= first_dirty_offset <= log.end_offset:
        first_dirty_offset = log.start_offset
    youngest_ms = now_ms - settings.min_compaction_lag_ms
    segments: list[tuple[Segment, Offset]] = []
    for segment, end_offset in log.segments.closed():
        is_young = settings.min_compaction_lag_ms > 0 and segment.largest_timestamp_ms > youngest_ms
        if end_offset > up_to_offset or (end_offset > first_dirty_offset and is_young):
            break
        segments.append((segment, end_offset))
    dirty = [segment for segment, end_offset in segments if end_offset > first_dirty_offset]
    dirty_bytes = sum(segment.size for segment in dirty)
    if dirty_bytes == 0:
        return None
    ratio = dirty_bytes / sum(segment.size for segment, _ in segments)
    if ratio <= settings.min_cleanable_dirty_ratio and not _waits_too_long(dirty, now_ms, settings):
        return None
    return Dirty(first_dirty_offset, segments, ratio)


def _waits_too_long(dirty: list[Segment], now_ms: int, settings: LogSettings) -> bool:
    if settings.max_compaction_lag_ms >= FOREVER_MS:
        return False
    times = [time for time in (segment.first_timestamp for segment in dirty) if time > 0]
    return bool(times) and now_ms - min(times) > settings.max_compaction_lag_ms


class Compaction:
    __slots__ = ("_copy", "_dirty", "_files", "_keys", "_log", "_max_keys", "_now_ms", "_work", "is_done", "to_flush")

    def __init__(self, log: "Log", files: Files, dirty: Dirty, now_ms: int, max_keys: int) -> None:
        self._log = log
        self._files = files
        self._dirty = dirty
        self._now_ms = now_ms
        self._max_keys = max_keys
        self._keys = LastOffsets()
        self._copy: Segment | None = None
        self._work = self._slices()
        self.to_flush: list[File] = []
        """To be brought to disk before the next step."""
        self.is_done = False

    @property
    def clean_to(self) -> Offset:
        """Once it is done: the first dirty offset of the next compaction, for the `cleaner-offset-checkpoint`."""
        return self._keys.seen_to if self.is_done else self._dirty.first_offset

    @property
    def unreadable(self) -> InvalidBatch | None:
        """Of batches that were passed over and stay, what is wrong with the first."""
        return self._keys.unreadable

    def step(self, budget_bytes: int) -> bool:
        """Work through about so many bytes; whether all is done. A log that cannot be read, or a disk that takes no
        copy, ends the compaction with an exception and leaves the log as it was."""
        assert not self.to_flush, "these have to be flushed first"
        try:
            while not self.is_done and not self.to_flush and budget_bytes > 0:
                budget_bytes -= next(self._work)
        except StopIteration:
            self.is_done = True
        except (Damaged, InvalidBatch, DiskFailed):
            self.abandon()
            raise
        return self.is_done

    def flushed(self) -> None:
        self.to_flush = []

    def abandon(self) -> None:
        """Stop, and leave nothing behind."""
        if not self.is_done:
            self.is_done = True
            self._keys = LastOffsets()
            self._keys.seen_to = self._dirty.first_offset
            self.to_flush = []
            self._work.close()
            if self._copy is not None:
                self._copy.discard()

    def _slices(self) -> Generator[int, None, None]:
        """The whole of the work; yields how many bytes each piece of it has read."""
        yield from self._note_keys()
        for group in self._groups():
            yield from self._copied(group)

    def _note_keys(self) -> Generator[int, None, None]:
        first_offset = self._dirty.first_offset
        for segment, end_offset in self._dirty.segments:
            place = segment.place_of(first_offset) if end_offset > first_offset else None
            if place is not None:
                for _, batch, view in whole_batches(segment.log, place.position, segment.base_offset):
                    if len(self._keys) >= self._max_keys:
                        return
                    self._keys.note(batch, view, first_offset)
                    yield len(view)
            self._keys.seen_to = end_offset

    def _groups(self) -> list[list[tuple[Segment, Offset]]]:
        """Neighbours that make one segment together, even if nothing can be removed from them."""
        settings = self._log.settings
        groups: list[list[tuple[Segment, Offset]]] = []
        size = index_size = 0
        for segment, end_offset in self._dirty.segments:
            if segment.base_offset >= self._keys.seen_to:
                break
            size += segment.size
            index_size += segment.time_index.size_bytes
            if (
                not groups
                or size > settings.segment_bytes
                or index_size > settings.segment_index_bytes
                or end_offset - groups[-1][0][0].base_offset > LARGEST_RELATIVE_OFFSET
            ):
                groups.append([])
                size, index_size = segment.size, segment.time_index.size_bytes
            groups[-1].append((segment, end_offset))
        return groups

    def _copied(self, group: list[tuple[Segment, Offset]]) -> Generator[int, None, None]:
        log = self._log
        old = [segment for segment, _ in group]
        end_offset = group[-1][1]
        cleaner = Cleaner(self._keys, log.producers.last_offsets(), log.settings.delete_retention_ms, self._now_ms)
        copy = Segment(self._files, log.directory, old[0].base_offset, log.settings, self._now_ms, suffix=CLEANED)
        self._copy = copy
        copy.log.append(b"")
        for segment in old:
            for _, batch, view in whole_batches(segment.log, 0, segment.base_offset):
                cleaned = cleaner.cleaned(batch, view, is_last=batch.next_offset == end_offset)
                if cleaned is not None:
                    copy.append(memoryview(cleaned), batch.next_offset, time_of(read_header(cleaned)))
                yield len(view)
        copy.finish()
        # Where an epoch began may be told by nothing but the checkpoint from now on.
        self.to_flush = [*copy.files(), *log.epochs_to_flush()]
        yield 0
        self._copy = None
        log.replace_segments(old, copy)
