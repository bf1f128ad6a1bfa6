"""What else lies in a log's directory: snapshots of its producers, and its epoch checkpoint.

Both are written without waiting for the disk and flushed together with the log, which can tell again what they say; the
checkpoint of a compacted log is waited for.
"""

from klamm.ids import Offset
from klamm.log.checkpoint import LARGEST_BYTES, epochs_text, read_small
from klamm.log.epochs import EpochCache
from klamm.log.files import DiskFailed, File, Files
from klamm.log.names import LEADER_EPOCHS, SNAPSHOT, file_name
from klamm.log.producers import ProducerStates
from klamm.log.snapshots import read_snapshot, snapshot_bytes


class Shelf:
    __slots__ = ("_directory", "_files", "_unflushed", "snapshots")

    def __init__(self, files: Files, directory: str, snapshots: list[Offset] | None = None) -> None:
        self._files = files
        self._directory = directory
        self.snapshots = snapshots or []
        """The offsets before which they saw the log, growing."""
        self._unflushed: list[Offset] = []

    def take_snapshot(self, producers: ProducerStates, offset: Offset) -> None:
        """Of the producers as they are where the log ends at this offset."""
        if self.has_snapshot(offset):
            return
        assert not self.snapshots or self.snapshots[-1] < offset
        self._files.write_whole(self._snapshot_path(offset), snapshot_bytes(producers), durable=False)
        self.snapshots.append(offset)
        self._unflushed.append(offset)

    def has_snapshot(self, offset: Offset) -> bool:
        return bool(self.snapshots) and self.snapshots[-1] == offset

    def snapshots_to_flush(self) -> list[File]:
        """Those taken since the last time. For producers whose records are deleted they are all there is."""
        taken, self._unflushed = self._unflushed, []
        return [self._files.file(self._snapshot_path(offset)) for offset in taken if offset in self.snapshots]

    def flush_snapshot(self, offset: Offset) -> None:
        """Now, and wait for the disk."""
        if offset in self.snapshots:
            self._files.flush([self._files.file(self._snapshot_path(offset))])

    def latest_snapshot(self, now_ms: int) -> tuple[ProducerStates, Offset]:
        """The newest that can be believed, and the offset up to which it saw the log. Damaged ones are removed."""
        while self.snapshots:
            offset = self.snapshots[-1]
            producers = self._read_snapshot(offset, now_ms)
            if producers is not None:
                return producers, offset
            self.drop_snapshots([offset])
        return ProducerStates(), 0

    def _read_snapshot(self, offset: Offset, now_ms: int) -> ProducerStates | None:
        try:
            return read_snapshot(read_small(self._files, self._snapshot_path(offset), LARGEST_BYTES), now_ms)
        except DiskFailed:
            return None

    def drop_snapshots(self, offsets: list[Offset]) -> None:
        """Those of these offsets that there are."""
        for offset in offsets:
            if offset in self.snapshots:
                self._files.remove(self._snapshot_path(offset))
                self.snapshots.remove(offset)

    def drop_snapshots_outside(self, first: Offset, last: Offset) -> None:
        self.drop_snapshots([offset for offset in self.snapshots if not first <= offset <= last])

    def write_epochs(self, epochs: EpochCache, *, durable: bool) -> File:
        path = f"{self._directory}/{LEADER_EPOCHS}"
        self._files.write_whole(path, epochs_text(epochs.entries()), durable=durable)
        epochs.changed = False
        return self._files.file(path)

    def _snapshot_path(self, offset: Offset) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT)}"
