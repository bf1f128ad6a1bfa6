"""A partition's log: batches in segments, from `start_offset` to `end_offset`, with epochs and producer state.

Three ways in: `append_as_leader` takes a producer's batch, checks and judges it, and gives it its offset;
`append_as_follower` takes batches as the leader stored them; `append_own` takes what the broker itself writes. One way
out: `read`. A batch that is refused (KafkaError) has changed nothing. When the disk fails, the log is `failed` and
takes nothing more until it has been opened, and recovered, anew.

Everything below `recovery_point` is on disk: `files_to_flush` says what has to be flushed to move it, `flushed` moves
it. Whoever keeps recovery points in a checkpoint must write it when a truncation has lowered one, and after opening,
before the log grows again; recovery believes the checkpoint.

A log without records is a directory and nothing else: files appear with the first append. A new one is not even that;
whoever made it says how its directory is to be made when there is something to put there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell, unheard
from klamm.ids import Epoch, Now, Offset
from klamm.log import timing
from klamm.log.admission import TakesLong, admitted, check_size, is_timely, with_max_timestamp, youngest_of
from klamm.log.compaction import MAX_KEYS, Compaction, dirty_range
from klamm.log.files import DiskFailed, DiskFull, File, Files
from klamm.log.following import checked_run
from klamm.log.reading import LogSlice, empty_slice, slice_of
from klamm.log.recovery import Loaded, load
from klamm.log.replaying import note_stored, replayed
from klamm.log.retention import SegmentDeleted, expired
from klamm.log.salvage import NO_CARE, Care
from klamm.log.segment import Segment
from klamm.log.segments import Segments
from klamm.log.settings import LogSettings
from klamm.log.shelf import Shelf
from klamm.log.walking import time_of
from klamm.records.batch import Batch, checked, read_header, stamp
from klamm.records.builder import BatchBuilder
from klamm.records.record import InvalidRecords as RefusedRecords
from klamm.records.validation import Built, Validation

__all__ = ["Appended", "Log", "RefusedRecords", "TakesLong"]

_NO_LIMIT = 2**63 - 1


class Appended:
    """Where a batch went. A retry is told where it went the first time."""

    __slots__ = ("append_time_ms", "base_offset", "duplicate", "last_offset")

    def __init__(self, base_offset: Offset, last_offset: Offset, append_time_ms: int, duplicate: bool) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.append_time_ms = append_time_ms
        """-1 on topics of CreateTime."""
        self.duplicate = duplicate

    def __repr__(self) -> str:
        return f"<appended {self.base_offset}..{self.last_offset}{' again' if self.duplicate else ''}>"


class Log:
    __slots__ = (
        "_changes_batches",
        "_compaction",
        "_files",
        "_flush_cap",
        "_flushes",
        "_make_directory",
        "_settings",
        "_shelf",
        "_tick_end_offset",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "producers",
        "recovery_point",
        "segments",
        "start_offset",
    )

    @classmethod
    def open(
        cls,
        directory: str,
        files: Files,
        settings: LogSettings,
        now: Now,
        *,
        clean: bool,
        recovery_point: Offset,
        start_offset: Offset = 0,
        tell: Tell = unheard,
        on_damage: Callable[[], None] = lambda: None,
        care: Care = NO_CARE,
    ) -> "Log":
        """The log in this directory, which is made if it is not there. Recovers it unless it was closed cleanly; calls
        `on_damage` first if something that was written may be missing. `care` says what may be cut."""
        loaded = load(
            directory,
            files,
            settings,
            now.wall_ms,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            tell=tell,
            on_damage=on_damage,
            care=care,
        )
        return cls(directory, files, settings, loaded)

    def __init__(self, directory: str, files: Files, settings: LogSettings, loaded: Loaded) -> None:
        self.directory = directory
        self._files = files
        self._shelf = loaded.shelf
        self.segments = Segments(files, directory, settings, loaded.segments, loaded.unflushed)
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.failed: str | None = None
        """Why the log takes nothing more."""
        self._flushes = 0
        self._flush_cap = _NO_LIMIT
        self._compaction: Compaction | None = None
        self._tick_end_offset = -1
        self._make_directory: Callable[[], None] | None = None
        self.settings = settings

    @classmethod
    def new(cls, directory: str, files: Files, settings: LogSettings, make_directory: Callable[[], None]) -> "Log":
        """One that never held anything. It touches the disk with its first record."""
        log = cls(directory, files, settings, Loaded(0, 0, 0, Shelf(files, directory)))
        log._make_directory = make_directory
        return log

    @classmethod
    def unopened(cls, directory: str, files: Files, settings: LogSettings, start_offset: Offset) -> "Log":
        """In the place of a log that cannot be opened. It is to be told why, with `fail`."""
        return cls(
            directory, files, settings, Loaded(start_offset, start_offset, start_offset, Shelf(files, directory))
        )

    # Writing.

    def append_as_leader(
        self,
        view: memoryview,
        leader_epoch: Epoch,
        now: Now,
        *,
        validation: Validation | Built | None = None,
        may_wait: bool = False,
    ) -> Appended:
        """Check, judge, stamp and write one batch of a producer. The view must be writable; it is changed in place. Who
        may wait hears `TakesLong` where looking at the records would, and comes again with the validation done."""
        settings = self._settings
        if len(view) > settings.max_message_bytes:
            check_size(len(view), settings)
        batch = checked(view)
        if batch.producer_id >= 0:
            repeated = self.producers.judge(batch)
            if repeated is not None:
                # A log that failed in the middle of a truncation may remember what it no longer holds.
                self._check_sound()
                return Appended(repeated.base_offset, repeated.last_offset, repeated.timestamp, True)
        if (
            settings.validate
            or settings.compact
            or not (settings.append_time or is_timely(batch, settings, now.wall_ms))
        ):
            youngest_ms = youngest_of(view, batch, settings, now.wall_ms, validation, may_wait)
            if youngest_ms != batch.max_timestamp and not settings.append_time:
                batch = with_max_timestamp(view, youngest_ms)
        if self._changes_batches:
            view, batch = admitted(view, batch, settings, now.wall_ms)
        try:
            return self._append(view, batch, leader_epoch, now)
        except DiskFull:
            self.producers.refuse(batch)
            raise

    def append_own(self, batch: "BatchBuilder | memoryview | bytearray", leader_epoch: Epoch, now: Now) -> Appended:
        """One batch of the broker's own making, which may be a control batch. It is not checked, not judged."""
        view = memoryview(batch.build() if isinstance(batch, BatchBuilder) else batch)
        header = read_header(view)
        assert header.size_bytes == len(view), "exactly one batch"
        return self._append(view, header, leader_epoch, now)

    def append_as_follower(self, view: memoryview, now: Now) -> Appended | None:
        """Batches as a leader stored them. They continue this log, perhaps after a gap that compaction left; a batch
        that is cut off at the end is ignored. None if there is no whole batch."""
        self._check_sound()
        found = checked_run(view, self.end_offset, self.epochs.latest, may_begin_before=not self.size_bytes)
        if not found:
            return None
        if found[0][1].base_offset < self.end_offset:
            # (If there is no room then, it begins before it ends, and is told to start over by the next fetch.)
            self._begin_at(found[0][1].base_offset)
        run: list[tuple[int, Batch]] = []
        for position, batch in found:
            size = position + batch.size_bytes - (run[0][0] if run else position)
            if not self.segments.has_room(size, batch.next_offset, batch.max_timestamp, now.wall_ms):
                self._append_run(view, run, now)
                run = []
                self._make_room(batch.size_bytes, batch.next_offset, batch.max_timestamp, now.wall_ms)
            run.append((position, batch))
        self._append_run(view, run, now)
        return Appended(found[0][1].base_offset, self.end_offset - 1, -1, False)

    def roll(self, now: Now) -> None:
        """Begin a new segment, unless the active one is still empty."""
        self._check_sound()
        if self.segments.active is not None and self.segments.active.size:
            with self._disk():
                self._roll(now.wall_ms)

    def fail(self, reason: str) -> None:
        """The disk broke a promise. Also to be called when a flush has failed, which must not be tried again."""
        self.failed = self.failed or reason
        # Without an active segment there is no room, and who makes room asks first whether the log has failed.
        self.segments.active = None

    # Reading.

    def read(self, offset: Offset, max_bytes: int, up_to_offset: Offset, *, at_least_one: bool = True) -> LogSlice:
        """Whole batches from the one that holds `offset`, none of which ends after `up_to_offset`."""
        if not self.start_offset <= offset <= self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is not within {self.start_offset}..{self.end_offset}"
            )
        if offset < up_to_offset:
            for segment, end_offset in self.segments.from_offset(offset, self.end_offset):
                found = slice_of(segment, offset, max_bytes, up_to_offset, end_offset, at_least_one=at_least_one)
                if found is not None:
                    return found
        return empty_slice(offset)

    def offset_for_time(self, timestamp_ms: int) -> tuple[Offset, int, Epoch] | None:
        """Offset, time and leader epoch of the first record at or after this time."""
        return timing.offset_for_time(self.segments.all, self.start_offset, timestamp_ms)

    def offset_of_max_timestamp(self) -> tuple[Offset, int, Epoch] | None:
        return timing.offset_of_max_timestamp(self.segments.all, self.start_offset)

    def end_offset_for_epoch(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """See `EpochCache.end_offset_of`."""
        return self.epochs.end_offset_of(epoch, self.end_offset)

    @property
    def has_directory(self) -> bool:
        return self._make_directory is None

    @property
    def latest_epoch(self) -> Epoch:
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    # Settings.

    @property
    def settings(self) -> LogSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: LogSettings) -> None:
        self._settings = settings
        self._changes_batches = settings.append_time or settings.compression is not None
        self.segments.configure(settings)

    # Flushing.

    def files_to_flush(self) -> tuple[list[File], Offset]:
        """What has to reach the disk so that everything up to the offset has. Then call `flushed`, or `fail`."""
        files = [file for segment in self.segments.unflushed for file in segment.files()]
        files += self._shelf.snapshots_to_flush()
        if self.segments.active is not None and self.end_offset > self.recovery_point:
            files.append(self.segments.active.log)
        files += self.epochs_to_flush()
        self._flushes += 1
        return files, self.end_offset

    def epochs_to_flush(self) -> list[File]:
        """Their checkpoint, if it is not up to date. The log could tell again what it says, unless it is compacted:
        then there is one on disk at any time, the old one or the new."""
        if not self.epochs.changed or not self.segments.all:
            return []
        with self._disk_or_no_room():
            return [self._shelf.write_epochs(self.epochs, durable=self._settings.compact)]

    def flushed(self, up_to_offset: Offset) -> None:
        up_to_offset = min(up_to_offset, self._flush_cap)
        self._flushes -= 1
        if self._flushes == 0:
            self._flush_cap = _NO_LIMIT
        self.recovery_point = max(self.recovery_point, up_to_offset)
        if self.segments.unflushed:
            done = [segment for segment, end_offset in self.segments.closed() if end_offset <= up_to_offset]
            self.segments.unflushed = [segment for segment in self.segments.unflushed if segment not in done]

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether a segment was rolled since the last flush. Kafka flushes then, so that recovery stays short."""
        return bool(self.segments.unflushed)

    def close_cleanly(self) -> None:
        """Leave nothing to recover. Opening it with `clean=True` is then right."""
        if self.failed is not None:
            return
        self._abandon_compaction()
        with self._disk():
            if self.epochs.changed and self.segments.all:
                # Most logs can tell again what the checkpoint says: no need to wait until it is on disk.
                self._shelf.write_epochs(self.epochs, durable=self._settings.compact)
            files, end_offset = self.files_to_flush()
            if files:
                self._files.flush(files)
            self.flushed(end_offset)
            active = self.segments.active
            if active is not None and (active.has_pending or not self._shelf.has_snapshot(self.end_offset)):
                active.finish()
                self._shelf.take_snapshot(self.producers, self.end_offset)
            self.close()

    def close(self) -> None:
        """Let go of the files, whatever is in them: the log is about to be deleted or opened anew."""
        self._abandon_compaction()
        for segment in self.segments.all:
            segment.close()

    def reopened(self, now: Now, tell: Tell = unheard) -> "Log":
        """The same log, recovered from what is on disk, in the place of this one, which has failed."""
        assert self.failed is not None
        if self._make_directory is not None:
            log = Log.new(self.directory, self._files, self._settings, self._make_directory)
        else:
            self._abandon_compaction()
            self.close()
            log = Log.open(
                self.directory,
                self._files,
                self._settings,
                now,
                clean=False,
                recovery_point=self.recovery_point,
                start_offset=self.start_offset,
                tell=tell,
            )
        log.producers.remember_refused(self.producers)
        return log

    # Losing the end: what a follower does when the leader's history is another.

    def truncate_to(self, offset: Offset) -> bool:
        """Let the log end at this offset, or with the last batch that ends before it; whether anything was cut. Of one
        segment no more than a piece is cut at once (`Files.piece_bytes`): then the log ends later than it should, and
        whoever compares it with the leader's finds out and cuts again."""
        if offset >= self.end_offset:
            # An epoch may have begun here in which nothing was written; the leader's history knows nothing of it.
            self.epochs.truncate_from_end(self.end_offset)
            return False
        self._check_sound()
        first_offset = self.segments.first_offset
        if first_offset is None or offset < first_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        self._abandon_compaction()
        with self._disk():
            removed = self.segments.remove_after(offset)
            segment = self.segments.active
            assert segment is not None
            if removed:
                # First these have to be gone for good, or a crash might leave them behind a hole.
                self._files.flush([segment.log])
            self._ends_at(segment.truncate_to(max(offset, segment.first_offset_within(self._files.piece_bytes))))
            # If a crash brought the old end back, newer segments might seem to follow on it.
            self._files.flush([segment.log])
            self._shelf.drop_snapshots_outside(0, self.end_offset)
            if len(self.producers):
                seen_ms = max(state.seen_ms for _, state in self.producers.items())
                self.producers = replayed(self._shelf, self.segments.all, seen_ms)
        return True

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Forget everything. The next record gets this offset."""
        self._check_sound()
        self._abandon_compaction()
        with self._disk():
            self.segments.remove_after(-1)
            self._shelf.drop_snapshots_outside(0, -1)
            self.epochs.clear()
            self.producers.clear()
            self._ends_at(offset)
            self.start_offset = self.recovery_point = offset
            if offset:
                self._roll(0)

    # Losing the beginning: DeleteRecords and retention.

    def advance_start_offset(self, offset: Offset) -> bool:
        """Readers no longer see what is before. Its segments go with the next `delete_expired_segments`."""
        if offset > self.end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the log ends at {self.end_offset}, before {offset}")
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        return True

    def delete_expired_segments(self, now: Now, high_watermark: Offset) -> list[SegmentDeleted]:
        """Apply retention: files are renamed at once, and removed `file.delete.delay.ms` later, as Kafka does it. To be
        called now and then; a log that did not grow since the last time also gives back what memory it can."""
        if self.failed is not None:
            return []
        with self._disk():
            gone = expired(self, now.wall_ms, high_watermark)
            if gone:
                self._delete_first(len(gone), now.wall_ms)
        if self._tick_end_offset == self.end_offset:
            for segment in self.segments.all:
                segment.rest()
        self._tick_end_offset = self.end_offset
        return [SegmentDeleted(self.directory, segment.base_offset, segment.size, reason) for segment, reason in gone]

    # Compacting.

    def compaction(
        self, now: Now, first_dirty_offset: Offset, up_to_offset: Offset, *, max_keys: int = MAX_KEYS
    ) -> Compaction | None:
        """A machine that compacts this log in slices; None if the log is clean enough. `first_dirty_offset` is how far
        it was compacted before, `up_to_offset` how far it may be: the high watermark or the last stable offset. One
        that was begun before and is not done ends."""
        self._abandon_compaction()
        dirty = dirty_range(self, now.wall_ms, first_dirty_offset, up_to_offset) if self.failed is None else None
        if dirty is None:
            return None
        self._compaction = Compaction(self, self._files, dirty, now.wall_ms, max_keys)
        return self._compaction

    def replace_segments(self, old: list[Segment], new: Segment) -> None:
        """Compaction has made a new segment of old ones, and brought it to disk."""
        with self._disk():
            self.segments.replace(old, new, self._settings.file_delete_delay_ms)
            self._shelf.drop_snapshots([segment.base_offset for segment in old[1:]])

    # Helpers.

    def _append(self, view: memoryview, batch: Batch, leader_epoch: Epoch, now: Now) -> Appended:
        assert leader_epoch >= self.epochs.latest, "leader epochs only grow along the log"
        base_offset = self.end_offset
        next_offset = base_offset + batch.last_offset_delta + 1
        max_timestamp = batch.max_timestamp
        if not self.segments.has_room(len(view), next_offset, max_timestamp, now.wall_ms):
            self._make_room(len(view), next_offset, max_timestamp, now.wall_ms)
        segment = self.segments.active
        assert segment is not None
        stamp(view, base_offset, leader_epoch)
        try:
            segment.append(view, next_offset, max_timestamp)
        except DiskFull:
            raise  # See `_disk_or_no_room`, which would be felt here.
        except DiskFailed as error:
            self.fail(str(error))
            raise
        self.end_offset = next_offset
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if batch.producer_id >= 0:
            if batch.is_control:
                note_stored(self.producers, read_header(view), view, now.wall_ms)
            else:
                self.producers.note(batch, base_offset, max_timestamp, now.wall_ms)
            if len(self.producers) > self._settings.max_producers:
                self.producers.forget_oldest(self._settings.max_producers)
        if max_timestamp < 0:
            segment.touched_ms = now.wall_ms
        return Appended(base_offset, next_offset - 1, max_timestamp if batch.log_append_time else -1, False)

    def _append_run(self, view: memoryview, run: list[tuple[int, Batch]], now: Now) -> None:
        """Batches of a leader, all into the active segment."""
        if not run:
            return
        segment = self.segments.active
        assert segment is not None
        start, end = run[0][0], run[-1][0] + run[-1][1].size_bytes
        shift = segment.size - start
        with self._disk_or_no_room():
            segment.log.append(view[start:end])
            for position, batch in run:
                segment.note_batch(shift + position, batch.next_offset, time_of(batch))
        segment.touched_ms = now.wall_ms
        for position, batch in run:
            self.epochs.begin_after(self.end_offset, batch.leader_epoch)
            if batch.has_producer:
                note_stored(self.producers, batch, view[position : position + batch.size_bytes], now.wall_ms)
            self.end_offset = batch.next_offset
        if len(self.producers) > self._settings.max_producers:
            self.producers.forget_oldest(self._settings.max_producers)

    def _make_room(self, size: int, next_offset: Offset, max_timestamp: int, now_ms: int) -> None:
        self._check_sound()
        had_segment = self.segments.active is not None
        with self._disk():
            if self._make_directory is not None:
                self._begin_directory(self._make_directory)
            rolled = self.segments.make_room(size, self.end_offset, next_offset, max_timestamp, now_ms)
            if rolled is not None and had_segment:
                self._shelf.take_snapshot(self.producers, rolled.base_offset)

    def _roll(self, now_ms: int) -> None:
        """A new segment that has a file though it has no records: its name tells where the log goes on."""
        had_segment = self.segments.active is not None
        if self._make_directory is not None:
            self._begin_directory(self._make_directory)
        self.segments.roll(self.end_offset, now_ms).log.append(b"")
        if had_segment:
            self._shelf.take_snapshot(self.producers, self.end_offset)

    def _begin_directory(self, make_directory: Callable[[], None]) -> None:
        make_directory()
        self._make_directory = None

    def _begin_at(self, offset: Offset) -> None:
        """Records were deleted up to the middle of the leader's first batch, and this log, still without records, began
        there. Its readers will, but its bytes begin with the batch."""
        with self._disk():
            self.segments.remove_after(-1)
        self.end_offset = offset

    def _ends_at(self, offset: Offset) -> None:
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        if self._flushes:
            # What a flush under way has seen above this offset is not what will be written there.
            self._flush_cap = min(self._flush_cap, offset)
        self.epochs.truncate_from_end(offset)

    def _delete_first(self, count: int, now_ms: int) -> None:
        self._abandon_compaction()
        if count == len(self.segments.all):
            self._roll(now_ms)
        first_offset = self.segments.all[count].base_offset
        if len(self.producers) and self.recovery_point <= first_offset:
            # It is all that will be known of producers whose records go; without it a retry would be taken for news.
            self._shelf.flush_snapshot(first_offset)
        self.segments.delete_first(count, self._settings.file_delete_delay_ms)
        self.advance_start_offset(first_offset)
        self._shelf.drop_snapshots_outside(first_offset, self.end_offset)

    def _abandon_compaction(self) -> None:
        if self._compaction is not None:
            self._compaction.abandon()
            self._compaction = None

    def _check_sound(self) -> None:
        if self.failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failed)

    @contextmanager
    def _disk(self) -> Iterator[None]:
        """What fails in here leaves the log between two states: it takes nothing more."""
        try:
            yield
        except DiskFailed as error:
            self.fail(str(error))
            raise

    @contextmanager
    def _disk_or_no_room(self) -> Iterator[None]:
        """The same, but for a full disk: nothing was written then, and when there is room again the log can go on where
        it is. (Indexes do without what there is no room for.)"""
        try:
            yield
        except DiskFull:
            raise
        except DiskFailed as error:
            self.fail(str(error))
            raise

    def __repr__(self) -> str:
        failed = f" failed: {self.failed}" if self.failed is not None else ""
        return (
            f"<log {self.directory} {self.start_offset}..{self.end_offset} {len(self.segments.all)} segments{failed}>"
        )
