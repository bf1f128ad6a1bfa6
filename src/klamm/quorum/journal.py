"""The quorum's log as one node holds it: batches with their epochs, the voters they record, and a snapshot before.

It knows nothing of roles. A leader appends its own batches, a follower those that it fetched; either way voters are
taken note of as soon as they are in the log, and forgotten when the log is cut. `next_flush` says what has to reach
the disk, `next_committed` what is to be applied, given how far everything is committed. One flush is under way at a
time; what was appended meanwhile shares the next.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from klamm.codec.primitives import Malformed
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.ids import NO_EPOCH, Epoch, Now, Offset
from klamm.log.log import Log
from klamm.log.reading import LogSlice
from klamm.log.walking import Damaged
from klamm.metadata import records as metadata_records
from klamm.metadata.records import MetadataRecord
from klamm.quorum.facts import SnapshotUnreadable
from klamm.quorum.messages import LogPosition, SnapshotId
from klamm.quorum.ready import CommittedBatch, Flush, SnapshotToLoad
from klamm.quorum.snapshot import SnapshotContents, SnapshotFetching, SnapshotFiles, UnreadableSnapshot
from klamm.quorum.voters import VoterHistory, Voters
from klamm.records.batch import Batch, InvalidBatch, batches, intact, read_header
from klamm.records.control import Voters as VotersRecord
from klamm.records.control import quorum_record_of
from klamm.records.record import records_of

# How much of the log one `next_committed` reads and decodes: some thousand records, a few milliseconds.
REPLAY_BYTES = 128 * 1024


class UnreadableMetadata(Exception):  # noqa: N818
    """What is committed cannot be understood. Guessing would lose topics: the node stops."""


class CommittedHistoryDiffers(Exception):  # noqa: N818
    """A leader wants us to forget what was committed: a majority lost its disks. The node stops and keeps it."""


@dataclass(slots=True)
class _Stored:
    batch: Batch
    view: memoryview


class Journal:
    def __init__(self, log: Log, snapshots: SnapshotFiles, configured: Voters, tell: Tell) -> None:
        self.log = log
        self.snapshots = snapshots
        self.voters = VoterHistory(configured)
        self.applied: Offset = 0
        self.was_cut = False
        """Below what a checkpoint of the recovery point may say: it has to be written anew."""
        self.bytes_since_snapshot = log.size_bytes
        self._flushing = False
        self._proposed: deque[CommittedBatch] = deque()
        self._to_load: SnapshotToLoad | None = None
        self._load_latest_snapshot(tell)
        due = max(self.applied, log.start_offset)
        for stored in self._stored_from(due, log.end_offset):
            self._check(stored, due)
            self._note_voters(stored.view, stored.batch)
            due = stored.batch.next_offset
        self._check_follows(log.end_offset, due)

    # Where it ends.

    @property
    def end_offset(self) -> Offset:
        return self.log.end_offset

    @property
    def flushed_end(self) -> Offset:
        """Everything below is on this node's disk. Only that may be acknowledged."""
        return self.log.recovery_point

    @property
    def position(self) -> LogPosition:
        """Epoch 0 at offset 0 stands for nothing at all."""
        latest = self.snapshots.latest
        return LogPosition(max(self.log.latest_epoch, latest.epoch if latest else 0), self.log.end_offset)

    # Writing.

    def append(self, batch: bytearray, records: Sequence[MetadataRecord], epoch: Epoch, now: Now) -> Offset:
        """A leader's own batch; the offset of its last record."""
        base = self.log.end_offset
        self.log.append_own(memoryview(batch), epoch, now)
        last = self.log.end_offset - 1
        self._note_voters(memoryview(batch), read_header(batch))
        self._proposed.append(CommittedBatch(base, last, epoch, records))
        self.bytes_since_snapshot += len(batch)
        return last

    def append_fetched(self, data: bytes, epoch: Epoch, now: Now) -> None:
        """Batches as the leader of this epoch has them. They continue this log, or nothing happens (KafkaError)."""
        found = list(batches(data))
        if any(batch.leader_epoch > epoch for _, batch in found):
            # It stands outside the checksum, and everybody's votes would be compared with it.
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of an epoch later than {epoch}")
        self.log.append_as_follower(memoryview(data), now)
        for position, batch in found:
            self._note_voters(memoryview(data)[position : position + batch.size_bytes], batch)
        self.bytes_since_snapshot += len(data)

    def forget_proposed(self) -> None:
        """This node no longer leads: what is applied comes from the log, whoever wrote it."""
        self._proposed.clear()

    def cut_where_it_parts(self, leader: LogPosition, high_watermark: Offset) -> None:
        """The leader's history has this epoch end there, and nothing that we wrote after it."""
        own_epoch, own_end = self.log.end_offset_for_epoch(leader.epoch)
        if own_epoch == NO_EPOCH:
            own_end = self.log.end_offset
        target = min(own_end, leader.end_offset) if own_epoch in (leader.epoch, NO_EPOCH) else own_end
        if target < high_watermark:
            raise CommittedHistoryDiffers(
                f"{self.log.directory} is committed up to {high_watermark}, and the leader's history ends at {target}"
            )
        assert not self._proposed, "a leader's log is never cut"
        if self.log.truncate_to(target):
            self.was_cut = True
        self.voters.truncate_to(self.log.end_offset)

    def check_keeps(self, high_watermark: Offset, snapshot: SnapshotId) -> None:
        """A snapshot takes the place of the log only if it holds everything that is committed."""
        if snapshot.end_offset < high_watermark:
            raise CommittedHistoryDiffers(
                f"{self.log.directory} is committed up to {high_watermark}, the leader offers a {snapshot}"
            )

    # Reading.

    def read(self, offset: Offset, max_bytes: int) -> LogSlice:
        return self.log.read(offset, max_bytes, self.log.end_offset)

    def judged(self, offset: Offset, last_epoch: Epoch) -> LogPosition | SnapshotId | None:
        """Whether a follower with this end may go on here: None. Or where its history parts from ours at the latest,
        or which snapshot it has to begin with, because what would tell is no longer in the log."""
        log, latest = self.log, self.snapshots.latest
        if offset == log.start_offset == 0:
            return None
        if log.start_offset > 0:
            assert latest is not None
            first_epoch = log.epochs.epoch_at(log.start_offset)
            is_snapshots_end = SnapshotId(offset, last_epoch) in self.snapshots.all and offset == log.start_offset
            if offset < log.start_offset or (last_epoch < first_epoch and not is_snapshots_end):
                return latest
            if is_snapshots_end:
                return None
        epoch, end = log.end_offset_for_epoch(last_epoch)
        if epoch == NO_EPOCH:
            return self.position
        return LogPosition(epoch, end) if epoch != last_epoch or end < offset else None

    # Flushing and applying.

    def next_flush(self) -> Flush | None:
        if self._flushing or self.log.failed is not None or self.log.end_offset <= self.log.recovery_point:
            return None
        flush = Flush(*self.log.files_to_flush())
        self._flushing = True
        return flush

    def flushed(self, up_to: Offset) -> None:
        assert self._flushing
        self._flushing = False
        self.log.flushed(up_to)

    def take_snapshot_to_load(self) -> SnapshotToLoad | None:
        found, self._to_load = self._to_load, None
        return found

    def next_committed(self, high_watermark: Offset) -> list[CommittedBatch]:
        """A leader's own from memory, as they were proposed; everything else from the log, a piece at a time."""
        found: list[CommittedBatch] = []
        proposed = self._proposed
        if proposed and proposed[0].base_offset == self.applied:
            while proposed and proposed[0].last_offset < high_watermark:
                found.append(proposed.popleft())
        elif self.applied < high_watermark:
            end = min(high_watermark, proposed[0].base_offset) if proposed else high_watermark
            found = self._committed(self.applied, end)
        if found:
            assert found[0].base_offset == self.applied and found[-1].last_offset < high_watermark
            self.applied = found[-1].last_offset + 1
        return found

    # Snapshots.

    def install(self, fetched: SnapshotFetching) -> None:
        """A snapshot that was fetched takes the place of the log. UnreadableSnapshot: it came damaged, all is as it
        was."""
        snapshot = fetched.snapshot
        contents = SnapshotContents(fetched.file)
        self.snapshots.keep(snapshot, fetched.file)
        self.log.truncate_fully_and_start_at(snapshot.end_offset)
        self.was_cut = True
        self._begin_with(snapshot, contents)

    def snapshot_taken(self, now: Now) -> None:
        """A new segment begins, so that the old ones can go when the time has come."""
        self.bytes_since_snapshot = 0
        self.log.roll(now)

    def clean(self, now: Now, high_watermark: Offset, retention_bytes: int, retention_ms: int) -> None:
        """While it is too large or too old, the oldest snapshot goes and the log begins where the next one ends."""
        snapshots = self.snapshots
        while len(snapshots.all) > 1:
            total = self.log.size_bytes + sum(map(snapshots.size_bytes, snapshots.all))
            age_ms = now.wall_ms - self._time_of(snapshots.all[0])
            if not (0 <= retention_bytes < total or 0 <= retention_ms < age_ms):
                break
            snapshots.remove(snapshots.all[0])
            self.log.advance_start_offset(min(snapshots.all[0].end_offset, high_watermark))
            self.log.delete_expired_segments(now, high_watermark)

    def _time_of(self, snapshot: SnapshotId) -> int:
        """A damaged one, which is not the latest, has had its time."""
        try:
            return self.snapshots.contents(snapshot).log_time_ms
        except UnreadableSnapshot:
            return 0

    def _load_latest_snapshot(self, tell: Tell) -> None:
        log, contents = self.log, None
        unreadable: list[SnapshotId] = []
        while contents is None and self.snapshots.latest is not None:
            latest = self.snapshots.latest
            try:
                contents = self.snapshots.contents(latest)
            except UnreadableSnapshot as error:
                tell(SnapshotUnreadable(str(error)))
                unreadable.append(latest)
                self.snapshots.all.remove(latest)
        epochs = log.epochs.entries()
        if epochs and epochs[0][1] > log.start_offset:
            # The log began here before the node stopped. What is still there of before has lost its epochs, and without
            # them nobody's history can be compared with it.
            log.advance_start_offset(epochs[0][1])
        end = self.snapshots.latest.end_offset if self.snapshots.latest else 0
        if log.start_offset > end:
            raise UnreadableMetadata(f"{log.directory} begins at {log.start_offset}, and no snapshot reaches that far")
        for snapshot in unreadable:
            self.snapshots.set_aside(snapshot)
        if log.end_offset < end:
            # The node stopped before the log had followed its snapshot.
            log.truncate_fully_and_start_at(end)
        if contents is not None and self.snapshots.latest is not None:
            self._begin_with(self.snapshots.latest, contents)

    def _begin_with(self, snapshot: SnapshotId, contents: SnapshotContents) -> None:
        self.voters.restart_with(contents.voters or self.voters.configured, snapshot.end_offset)
        self.applied = snapshot.end_offset
        self.bytes_since_snapshot = 0
        self._to_load = SnapshotToLoad(snapshot.end_offset - 1, snapshot.epoch, _understood(contents.records()))

    # Helpers.

    def _committed(self, start: Offset, end: Offset) -> list[CommittedBatch]:
        found = []
        for stored in self._piece(start, end):
            batch = stored.batch
            place = f"{self.log.directory} at offset {batch.base_offset}"
            found.append(
                CommittedBatch(batch.base_offset, batch.last_offset, batch.leader_epoch, _Records(stored.view, place))
            )
        return found

    def _stored_from(self, start: Offset, end: Offset) -> Iterator[_Stored]:
        while start < end:
            piece = self._piece(start, end)
            yield from piece
            if not piece:
                return
            start = piece[-1].batch.next_offset

    def _piece(self, start: Offset, end: Offset) -> list[_Stored]:
        try:
            data = memoryview(bytes(self.log.read(start, REPLAY_BYTES, end)))
        except Damaged as damage:
            raise UnreadableMetadata(str(damage)) from damage
        return [_Stored(batch, data[at : at + batch.size_bytes]) for at, batch in batches(data)]

    def _check(self, stored: _Stored, due: Offset) -> None:
        """At the start all of it: later is too late to say so to anybody who could mend it."""
        self._check_follows(stored.batch.base_offset, due)
        try:
            intact(stored.view)
        except InvalidBatch as error:
            raise UnreadableMetadata(f"{self.log.directory} is damaged: {error}") from error

    def _check_follows(self, offset: Offset, due: Offset) -> None:
        """Each batch begins where the one before ends, and the first where the snapshot does. Recovery does not see it
        where a segment that was flushed long ago has lost its end at a batch."""
        if offset > due:
            raise UnreadableMetadata(f"{self.log.directory} is damaged: it lacks the records {due} to {offset - 1}")
        if offset < due:
            raise UnreadableMetadata(
                f"{self.log.directory} is damaged: a batch begins at offset {offset}, where {due} is due"
            )

    def _note_voters(self, view: memoryview, batch: Batch) -> None:
        if not batch.is_control or batch.base_offset <= self.voters.latest_offset:
            return
        try:
            for record in records_of(view):
                found = quorum_record_of(record)
                if isinstance(found, VotersRecord):
                    self.voters.note(record.offset, Voters.recorded(found))
        except InvalidBatch as error:
            raise UnreadableMetadata(f"{self.log.directory} at offset {batch.base_offset}: {error}") from error


class _Records:
    """The records of a batch in the log, decoded as they are asked for: there may be ten thousand of them."""

    def __init__(self, view: memoryview, place: str) -> None:
        self._view = view
        self._place = place

    def __iter__(self) -> Iterator[MetadataRecord]:
        try:
            if intact(self._view).is_control:
                return
            for record in records_of(self._view):
                yield metadata_records.decode(record.value or b"")
        except (Malformed, InvalidBatch) as error:
            raise UnreadableMetadata(f"{self._place}: {error}") from error


def _understood(records: Iterator[MetadataRecord]) -> Iterator[MetadataRecord]:
    try:
        yield from records
    except (Malformed, InvalidBatch) as error:
        raise UnreadableMetadata(f"a snapshot of the metadata: {error}") from error
