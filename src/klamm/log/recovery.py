"""Opening a log: tidy its directory, find its end, and after a crash make it whole again.

What was flushed, everything below the recovery point, is there. What came later may be torn: every batch of the
segments from the recovery point on has to prove itself by its CRC, and the log ends before the first that cannot.
Indexes, epochs and producer state of these segments are rebuilt along the way. Older segments are not read; their
indexes, the epoch checkpoint and the snapshots are compared with the log where they meet it, and rebuilt if they
disagree.

Damage below the recovery point is another matter. A tail that is missing there means that the disk did not keep its
promise: the log ends earlier and says so. But if whole batches follow the damage, cutting would throw away records that
are safe, and opening would serve a log with a hole: then the log does not open (`LogDamaged`). The same goes for damage
above the recovery point if it cannot be a torn tail and nobody else has the records; whoever opens the log says so
(`Care`). What is more than a torn tail is never thrown away (`salvage.py`).

Whoever opens the log hears of any damage before something is done about it: a log that was made whole again looks as if
nothing had ever been missing.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from klamm.facts import Fact, Tell
from klamm.ids import NO_EPOCH, Epoch, Offset
from klamm.log.checkpoint import MOST_EPOCHS_BYTES, read_epochs, read_small
from klamm.log.epochs import EpochCache
from klamm.log.files import DiskFailed, Files
from klamm.log.names import LEADER_EPOCHS, LOG, SNAPSHOT, offset_of
from klamm.log.producers import ProducerStates
from klamm.log.replaying import note_stored, replayed
from klamm.log.salvage import NO_CARE, Care, LogDamaged, RecordsSetAside, TailCut, behind, keep_aside
from klamm.log.segment import Segment
from klamm.log.settings import LogSettings
from klamm.log.shelf import Shelf
from klamm.log.tidying import tidied
from klamm.log.walking import Damaged, headers, time_of, whole_batches
from klamm.records.batch import Batch

__all__ = ["FlushedRecordsMissing", "Loaded", "LogDamaged", "TailCut", "load"]


@dataclass(slots=True)
class Loaded:
    """What an open log consists of."""

    start_offset: Offset
    end_offset: Offset
    recovery_point: Offset
    shelf: Shelf
    segments: list[Segment] = field(default_factory=list)
    unflushed: list[Segment] = field(default_factory=list)
    epochs: EpochCache = field(default_factory=EpochCache)
    producers: ProducerStates = field(default_factory=ProducerStates)


class FlushedRecordsMissing(Fact):
    level = "error"
    directory: str
    end_offset: Offset
    recovery_point: Offset

    def __str__(self) -> str:
        return (
            f"{self.directory}: records {self.end_offset}..{self.recovery_point} had been flushed and are gone; "
            "the disk lost them, or somebody changed the files"
        )


def load(
    directory: str,
    files: Files,
    settings: LogSettings,
    now_ms: int,
    *,
    clean: bool,
    recovery_point: Offset,
    start_offset: Offset,
    tell: Tell,
    on_damage: Callable[[], None],
    care: Care = NO_CARE,
) -> Loaded:
    """The log in this directory, as it was closed or as it can be recovered."""
    if not files.exists(directory):
        _check_flushed_is_there(care, directory, 0, recovery_point)
        files.make_directory(directory)
        return Loaded(start_offset, start_offset, start_offset, Shelf(files, directory))
    names = tidied(files, directory, settings, now_ms, tell)
    segments = [Segment(files, directory, base, settings, now_ms) for base in _offsets(names, LOG)]
    shelf = Shelf(files, directory, _offsets(names, SNAPSHOT))
    loaded = Loaded(start_offset, start_offset, start_offset, shelf, segments)
    if not segments:
        _check_flushed_is_there(care, directory, 0, recovery_point)
        return loaded
    stored_epochs = _stored_epochs(files, directory) if LEADER_EPOCHS in names else None
    opening = _Opening(
        loaded, files, directory, stored_epochs, now_ms, tell, on_damage, care, is_compacted=settings.compact
    )
    try:
        if not clean or not opening.was_closed_cleanly():
            opening.recover(recovery_point)
    except Damaged as damage:
        raise LogDamaged(damage) from damage
    if loaded.end_offset < recovery_point:
        _check_flushed_is_there(care, directory, loaded.end_offset, recovery_point)
        on_damage()
        tell(FlushedRecordsMissing(directory, loaded.end_offset, recovery_point))
    opening.settle()
    return loaded


def _stored_epochs(files: Files, directory: str) -> list[tuple[Epoch, Offset]] | None:
    try:
        return read_epochs(read_small(files, f"{directory}/{LEADER_EPOCHS}", MOST_EPOCHS_BYTES))
    except DiskFailed:
        # The batches carry them too.
        return None


def _check_flushed_is_there(care: Care, directory: str, end_offset: Offset, recovery_point: Offset) -> None:
    """Others may have cut it, or have it. Alone, a log that everything follows from must not begin anew shorter."""
    if care.is_flushed_first and care.is_only_copy and end_offset < recovery_point:
        raise LogDamaged(
            f"{directory} ends at offset {end_offset}, and records up to {recovery_point} had been flushed: they are "
            "missing"
        )


class _Opening:
    __slots__ = (
        "_care", "_directory", "_files", "_is_compacted", "_loaded", "_now_ms", "_on_damage", "_stored_epochs", "_tell",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Loaded,
        files: Files,
        directory: str,
        stored_epochs: list[tuple[Epoch, Offset]] | None,
        now_ms: int,
        tell: Tell,
        on_damage: Callable[[], None],
        care: Care,
        *,
        is_compacted: bool,
    ) -> None:
        self._care = care
        self._loaded = loaded
        self._files = files
        self._directory = directory
        self._stored_epochs = stored_epochs
        self._is_compacted = is_compacted
        self._now_ms = now_ms
        self._tell = tell
        self._on_damage = on_damage

    def was_closed_cleanly(self) -> bool:
        """Load what a clean shutdown left; False if it turns out that it was none."""
        loaded = self._loaded
        if self._before_gap() is not None:
            return False
        try:
            last = loaded.segments[-1].load_end()
            loaded.end_offset = last.next_offset if last is not None else loaded.segments[-1].base_offset
            loaded.epochs = self._epochs(loaded.segments, last or _last_batch(loaded.segments[:-1]))
            loaded.shelf.drop_snapshots_outside(loaded.segments[0].base_offset, loaded.end_offset)
            loaded.producers = replayed(loaded.shelf, loaded.segments, self._now_ms)
        except Damaged as damage:
            self._on_damage()
            self._tell(TailCut(self._directory, loaded.end_offset, f"closed cleanly, yet {damage}"))
            return False
        loaded.recovery_point = loaded.end_offset
        self._tell_of_missing_beginning()
        return True

    def recover(self, recovery_point: Offset) -> None:
        """Check everything from the segment on that holds the recovery point."""
        segments = self._loaded.segments
        if not _reaches(segments[-1], recovery_point):
            # The checkpoint knows another log than this: what it says of older segments cannot be relied on either.
            recovery_point = segments[0].base_offset
        first = max(bisect_right([segment.base_offset for segment in segments], recovery_point) - 1, 0)
        before_gap = self._before_gap()
        self._scan(first if before_gap is None else min(first, before_gap), recovery_point)
        self._loaded.recovery_point = min(recovery_point, self._loaded.end_offset)

    def _before_gap(self) -> int | None:
        """The segment that another one seems to be missing after: a snapshot was taken where that began."""
        bases = [segment.base_offset for segment in self._loaded.segments]
        for offset in self._loaded.shelf.snapshots:
            number = bisect_right(bases, offset) - 1
            if 0 <= number < len(bases) - 1 and bases[number] != offset:
                return number
        return None

    def _tell_of_missing_beginning(self) -> None:
        """After a clean shutdown the epochs begin where the log does."""
        loaded, epochs = self._loaded, self._stored_epochs
        first = loaded.segments[0].base_offset
        if epochs and max(epochs[0][1], loaded.start_offset) < first:
            self._on_damage()
            self._tell(FlushedRecordsMissing(self._directory, max(epochs[0][1], loaded.start_offset), first))

    def settle(self) -> None:
        """The log's beginning, and no more epochs and snapshots than belong to it."""
        loaded = self._loaded
        if loaded.start_offset > loaded.end_offset:
            # It ends before it begins: all of its records had been deleted, and with them goes what is left.
            self._remove_after(0)
            loaded.epochs.clear()
            loaded.producers.clear()
            loaded.shelf.drop_snapshots_outside(0, -1)
            loaded.end_offset = loaded.recovery_point = loaded.start_offset
            loaded.unflushed = []
            return
        loaded.start_offset = max(loaded.start_offset, loaded.segments[0].base_offset)
        loaded.epochs.truncate_from_end(loaded.end_offset)
        loaded.epochs.truncate_from_start(loaded.start_offset)
        for segment in loaded.segments:
            segment.rest()
        needed = {segment.base_offset for segment in loaded.segments} | {loaded.end_offset}
        loaded.shelf.drop_snapshots([offset for offset in loaded.shelf.snapshots if offset not in needed])

    def _scan(self, first: int, recovery_point: Offset) -> None:
        loaded = self._loaded
        older = loaded.segments[:first]
        end_offset = loaded.segments[first].base_offset
        loaded.epochs = self._epochs(older, _last_batch(older))
        loaded.epochs.truncate_from_end(end_offset)
        # One from before the first segment does not know what was deleted since: it would be out of sequence.
        loaded.shelf.drop_snapshots_outside(loaded.segments[0].base_offset, end_offset)
        loaded.producers = replayed(loaded.shelf, older, self._now_ms)
        for number, segment in enumerate(loaded.segments[first:], first):
            if segment.base_offset != end_offset:
                self._end_before_gap(number, end_offset, recovery_point)
                break
            if number > first:
                loaded.shelf.take_snapshot(loaded.producers, end_offset)
            end_offset, size, damage = self._scan_segment(segment, recovery_point)
            if damage is not None:
                self._end_before(damage, number, size, end_offset, recovery_point)
                break
            segment.recovered(size)
        loaded.end_offset = end_offset
        loaded.unflushed = loaded.segments[first:-1]

    def _scan_segment(self, segment: Segment, recovery_point: Offset) -> tuple[Offset, int, Damaged | None]:
        """Where its whole batches end, in offsets and in bytes, and what is wrong with the next."""
        loaded = self._loaded
        segment.reset_indexes()
        end_offset, size = segment.base_offset, 0
        try:
            for position, batch, view in whole_batches(segment.log, 0, end_offset):
                self._check_follows(segment, position, batch, end_offset, recovery_point)
                segment.note_batch(position, batch.next_offset, time_of(batch))
                self._begin_epoch(loaded.epochs, batch, end_offset)
                if batch.has_producer:
                    note_stored(loaded.producers, batch, view, self._now_ms)
                end_offset, size = batch.next_offset, position + batch.size_bytes
        except Damaged as damage:
            return end_offset, size, damage
        return end_offset, size, None

    def _check_follows(
        self, segment: Segment, position: int, batch: Batch, end_offset: Offset, recovery_point: Offset
    ) -> None:
        """Offset and epoch stand outside of the CRC: no gap, unless compaction may have left it, and no way back."""
        has_gap = batch.base_offset != end_offset and end_offset >= recovery_point and not self._is_compacted
        if has_gap or batch.next_offset > segment.offset_limit:
            raise Damaged(segment.log.path, position, f"{batch} where offset {end_offset} is due")
        if batch.leader_epoch < self._loaded.epochs.latest:
            raise Damaged(segment.log.path, position, f"{batch} after epoch {self._loaded.epochs.latest}")

    def _begin_epoch(self, epochs: EpochCache, batch: Batch, end_offset: Offset) -> None:
        """In a gap that compaction left before this batch the checkpoint may know which epochs began, and where. If it
        does not, this one began with the gap (`EpochCache.begin_after`)."""
        if batch.leader_epoch > epochs.latest:
            for epoch, start in self._stored_epochs or () if batch.base_offset > end_offset else ():
                if epochs.latest < epoch <= batch.leader_epoch and end_offset <= start <= batch.base_offset:
                    epochs.assign(epoch, start)
            epochs.begin_after(end_offset, batch.leader_epoch)

    def _epochs(self, segments: list[Segment], last: Batch | None) -> EpochCache:
        """The checkpoint's, if they agree with the last batch of these segments and know where the log begins; else
        those of all their batches."""
        if self._stored_epochs is not None:
            epochs = EpochCache(self._stored_epochs)
            if last is None or last.leader_epoch < 0:
                return epochs
            # A crash may bring records back that had been deleted, when the epochs had forgotten them already.
            # (A compacted log may have no records there.)
            beginning = max(self._loaded.start_offset, segments[0].base_offset)
            knows_beginning = self._is_compacted or epochs.epoch_at(beginning) != NO_EPOCH
            if knows_beginning and epochs.epoch_at(last.base_offset) == last.leader_epoch:
                return epochs
        epochs = EpochCache()
        for segment in segments:
            end_offset = segment.base_offset
            for _, batch in headers(segment.log, 0, end_offset):
                self._begin_epoch(epochs, batch, end_offset)
                end_offset = batch.next_offset
        return epochs

    def _end_before(self, damage: Damaged, number: int, size: int, end_offset: Offset, recovery_point: Offset) -> None:
        """A torn tail is cut off. What is more than that is kept; or the log is left as it is, and does not open."""
        care, segment = self._care, self._loaded.segments[number]
        later = self._loaded.segments[number + 1 :]
        found = behind(segment, size, end_offset, later)
        was_flushed = end_offset < recovery_point
        # A write that was interrupted leaves no whole batch, and nothing behind it.
        was_written = bool(care.keeps_writes) and not damage.is_short
        if found.batches and care.may_not_cut(was_flushed=was_flushed):
            raise LogDamaged(f"{damage}; {found.batches} whole batches, up to offset {found.end_offset}, follow it")
        if care.is_flushed_first and (was_flushed or was_written):
            raise LogDamaged(f"{damage}; it had been {'flushed' if was_flushed else 'written as a whole'}")
        self._on_damage()
        kept: tuple[str, ...] = ()
        if found.batches or was_flushed or was_written:
            kept = keep_aside(self._files, self._directory, segment, size, end_offset, later)
        segment.recovered(size)
        self._cut(number + 1, str(damage), end_offset, kept, found.batches)

    def _end_before_gap(self, number: int, end_offset: Offset, recovery_point: Offset) -> None:
        """Segments are missing, or the one before lost its end at a batch."""
        care, later = self._care, self._loaded.segments[number:]
        reason = f"segment {later[0].base_offset} does not follow on {end_offset}"
        found = behind(later[0], -1, end_offset, later[1:])
        was_flushed = end_offset < recovery_point and (care.is_only_copy or care.is_flushed_first)
        if found.batches and care.may_not_cut(was_flushed=was_flushed):
            raise LogDamaged(
                f"{self._directory}: {reason}: what stood in between is missing, and {found.batches} whole batches, up "
                f"to offset {found.end_offset}, follow it"
            )
        self._on_damage()
        kept = keep_aside(self._files, self._directory, None, 0, end_offset, later) if found.batches else ()
        self._cut(number, reason, end_offset, kept, found.batches)

    def _cut(self, number: int, reason: str, end_offset: Offset, kept: tuple[str, ...], batches: int) -> None:
        """What is cut must not come back with the next crash, when something else may stand behind it."""
        if kept:
            del self._loaded.segments[number:]
            self._tell(RecordsSetAside(self._directory, end_offset, reason, batches, kept))
        else:
            self._remove_after(number)
            self._tell(TailCut(self._directory, end_offset, reason))
        self._files.flush([self._loaded.segments[-1].log])

    def _remove_after(self, number: int) -> None:
        for segment in reversed(self._loaded.segments[number:]):
            segment.discard()
        del self._loaded.segments[number:]


def _offsets(names: list[str], kind: str) -> list[Offset]:
    return [offset for offset in (offset_of(name, kind) for name in names) if offset is not None]


def _last_batch(segments: list[Segment]) -> Batch | None:
    for segment in reversed(segments):
        if segment.size:
            return segment.load_end()
    return None


def _reaches(segment: Segment, offset: Offset) -> bool:
    """Whether the log, of which this is the last segment, seems to have got so far."""
    try:
        return offset <= segment.base_offset or segment.place_of(offset - 1) is not None
    except Damaged:
        return True
