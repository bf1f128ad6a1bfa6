"""Snapshots of the metadata: what the log's beginning adds up to, so that the beginning can go.

A snapshot is a file of record batches in Kafka's format, `<end offset>-<epoch>.checkpoint` beside the log. It begins
with a control batch (header, protocol version, voters), ends with another (footer), and holds the records in between.
While it is written or fetched its name ends in `.part`; the name is changed once all of it is on the disk, so a
snapshot that is there is whole. Who opens one checks every batch all the same.

Writing one takes as long as the metadata is large: it is done in slices.
"""

from collections.abc import Iterable, Iterator

from klamm.codec.primitives import Malformed
from klamm.ids import Bytes, Epoch, Offset
from klamm.log.files import File, Files, Region
from klamm.log.walking import Damaged, whole_batches
from klamm.metadata import records as metadata_records
from klamm.metadata.records import MetadataRecord
from klamm.quorum.messages import SnapshotId
from klamm.quorum.voters import KRAFT_VERSION, Voters
from klamm.records.batch import InvalidBatch
from klamm.records.builder import BatchBuilder
from klamm.records.control import (
    KRaftVersion,
    QuorumRecord,
    SnapshotFooter,
    SnapshotHeader,
    quorum_batch,
    quorum_record_of,
)
from klamm.records.control import Voters as VotersRecord
from klamm.records.record import records_of

ENDING = ".checkpoint"
PARTIAL = ".part"
DAMAGED = ".damaged"
"""What follows the name of one that cannot be read; nothing reads or removes it."""

SLICE_BYTES = 32 * 1024
"""One batch, and what is written at a time: a few milliseconds."""


class UnreadableSnapshot(Exception):  # noqa: N818
    """The file is not a whole snapshot."""


def file_name(snapshot: SnapshotId) -> str:
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}{ENDING}"


def snapshot_of(name: str) -> SnapshotId | None:
    """Which snapshot a file of this name is; None for any other name."""
    offset, dash, epoch = name.removesuffix(ENDING).partition("-")
    if not name.endswith(ENDING) or not dash or len(offset) != 20 or len(epoch) != 10:
        return None
    return SnapshotId(int(offset), int(epoch)) if offset.isdecimal() and epoch.isdecimal() else None


class SnapshotFiles:
    """The snapshots of one log's directory, the oldest first."""

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        names = files.listing(directory) if files.exists(directory) else []
        for name in names:
            if name.endswith(ENDING + PARTIAL):
                files.remove(f"{directory}/{name}")
        self.all = sorted(found for found in map(snapshot_of, names) if found is not None)

    @property
    def latest(self) -> SnapshotId | None:
        return self.all[-1] if self.all else None

    def open(self, snapshot: SnapshotId) -> File:
        return self._files.file(self._path(snapshot))

    def chunk(self, snapshot: SnapshotId, position: int, max_bytes: int) -> tuple[int, Region]:
        """The file's size, and bytes of it."""
        file = self.open(snapshot)
        return file.size, file.region(position, min(max_bytes, file.size - position))

    def contents(self, snapshot: SnapshotId) -> "SnapshotContents":
        return SnapshotContents(self.open(snapshot))

    def write(
        self, snapshot: SnapshotId, voters: Voters, records: Iterable[MetadataRecord], now_ms: int
    ) -> "SnapshotWriter":
        return SnapshotWriter(self._partial(snapshot), snapshot.epoch, voters, iter(records), now_ms)

    def fetch(self, snapshot: SnapshotId) -> "SnapshotFetching":
        return SnapshotFetching(snapshot, self._partial(snapshot))

    def keep(self, snapshot: SnapshotId, file: File) -> None:
        """All of it was written: make it count, and return when it does."""
        self._files.flush([file])
        file.rename(self._path(snapshot))
        # The name has to be on the disk as well before anybody relies on it.
        self._files.flush([file])
        file.close()
        self.all = sorted({*self.all, snapshot})

    def remove(self, snapshot: SnapshotId) -> None:
        self._files.remove(self._path(snapshot))
        self.all.remove(snapshot)

    def set_aside(self, snapshot: SnapshotId) -> None:
        """One that cannot be read: it is not used, and somebody may want to look at it."""
        self._files.rename(self._path(snapshot), f"{self._path(snapshot)}{DAMAGED}")

    def size_bytes(self, snapshot: SnapshotId) -> int:
        return self.open(snapshot).size

    def _partial(self, snapshot: SnapshotId) -> File:
        file = self._files.file(self._path(snapshot) + PARTIAL)
        if file.size:
            file.truncate(0)
        return file

    def _path(self, snapshot: SnapshotId) -> str:
        return f"{self._directory}/{file_name(snapshot)}"


class SnapshotContents:
    """A whole snapshot, every batch of which has been checked."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.voters: Voters | None = None
        """None in one that was written before voters were recorded."""
        self.log_time_ms = 0
        kinds: list[type] = []
        for record in self._control_records():
            kinds.append(type(record))
            if isinstance(record, VotersRecord):
                self.voters = Voters.recorded(record)
            elif isinstance(record, SnapshotHeader):
                self.log_time_ms = record.last_contained_log_timestamp
        if len(kinds) < 2 or kinds[0] is not SnapshotHeader or kinds[-1] is not SnapshotFooter:
            raise UnreadableSnapshot(f"{file.path} does not begin with a header and end with a footer")

    def records(self) -> Iterator[MetadataRecord]:
        for _, batch, view in whole_batches(self._file, 0, 0):
            if not batch.is_control:
                for record in records_of(view):
                    yield metadata_records.decode(record.value or b"")

    def _control_records(self) -> Iterator[QuorumRecord]:
        try:
            for _, batch, view in whole_batches(self._file, 0, 0):
                for record in records_of(view) if batch.is_control else ():
                    found = quorum_record_of(record)
                    if found is not None:
                        yield found
        except (Damaged, InvalidBatch, Malformed) as error:
            raise UnreadableSnapshot(str(error)) from error


class SnapshotWriter:
    """Writes one batch at a time."""

    def __init__(
        self, file: File, epoch: Epoch, voters: Voters, records: Iterator[MetadataRecord], now_ms: int
    ) -> None:
        self.file = file
        self._epoch = epoch
        self._records = records
        self._now_ms = now_ms
        self._next_offset: Offset = 0
        header: list[QuorumRecord] = [SnapshotHeader(last_contained_log_timestamp=now_ms)]
        if voters.is_recorded:
            header += [KRaftVersion(kraft_version=KRAFT_VERSION), voters.record()]
        self._append_control(header)

    def write_slice(self) -> bool:
        """Whether that was the last one."""
        builder = BatchBuilder(base_offset=self._next_offset, leader_epoch=self._epoch)
        for record in self._records:
            builder.append(None, metadata_records.encode(record), self._now_ms)
            if builder.size_bytes >= SLICE_BYTES:
                break
        if builder.count:
            self.file.append(builder.build())
            self._next_offset = builder.last_offset + 1
            return False
        self._append_control([SnapshotFooter()])
        return True

    def _append_control(self, records: list[QuorumRecord]) -> None:
        batch = quorum_batch(records, timestamp=self._now_ms, base_offset=self._next_offset, leader_epoch=self._epoch)
        self.file.append(batch)
        self._next_offset += len(records)


class SnapshotFetching:
    """A snapshot on its way from the leader."""

    def __init__(self, snapshot: SnapshotId, file: File) -> None:
        self.snapshot = snapshot
        self.file = file

    @property
    def position(self) -> int:
        return self.file.size

    def take(self, data: Bytes) -> None:
        self.file.append(data)
