"""Group commit: one flush at a time, for everything that waits for the disk.

While a flush is under way, more appends gather; the next flush takes them all. So under load one fdatasync serves many
producers, and alone a producer waits for exactly one. A failed flush is never tried again: the system may have dropped
the pages and would call the second try a success. The logs concerned go offline, and nothing of theirs was
acknowledged.
"""

from klamm.broker.broker import Broker
from klamm.broker.housekeeping import FlushWish
from klamm.facts import Tell
from klamm.ids import Now, Offset
from klamm.log.files import DiskFailed, File
from klamm.log.log import Log
from klamm.node.effects import Flush
from klamm.node.facts import FlushFailed
from klamm.node.metadata import Metadata
from klamm.partition.partition import Partition


class Flushing:
    def __init__(self, broker: Broker, metadata: Metadata, tell: Tell) -> None:
        self._broker = broker
        self._metadata = metadata
        self._tell = tell
        self._token = 0
        self._partitions: list[tuple[Partition, Log, Offset]] = []
        self._metadata_end: Offset | None = None
        self._wishes: list[FlushWish] = []
        self._under_way = False

    def next_flush(self, now: Now) -> Flush | None:
        """The flush to begin now, if one is wanted and none is under way."""
        if self._under_way:
            return None
        unflushed = self._broker.take_unflushed(now)
        wanted = self._metadata.files_to_flush()
        if not unflushed and wanted is None and not self._broker.flush_wishes:
            return None
        files: list[File] = []
        if wanted is not None:
            files += wanted[0]
            self._metadata_end = wanted[1]
        for partition in unflushed:
            try:
                log_files, end = partition.log.files_to_flush()
                files += [*log_files, *self._broker.partitions.directories.unflushed_name(partition)]
            except DiskFailed as error:
                self._broker.disk_failed(partition, error)
                continue
            self._partitions.append((partition, partition.log, end))
        self._wishes = [wish for wish in self._broker.flush_wishes if not wish.partition.deleted]
        self._broker.flush_wishes = []
        for wish in self._wishes:
            files += wish.files
        self._under_way = True
        self._token += 1
        return Flush(self._token, files)

    def done(self, token: int, error: str | None, now: Now) -> None:
        assert self._under_way and token == self._token
        self._under_way = False
        for wish in self._wishes:
            wish.done, wish.error = True, error
        partitions, self._partitions = self._partitions, []
        metadata_end, self._metadata_end = self._metadata_end, None
        if error is not None:
            self._failed(error, partitions, metadata_end is not None, now)
            return
        if metadata_end is not None:
            self._metadata.flushed(metadata_end)
        for partition, log, end in partitions:
            # A log that failed meanwhile may have been opened anew: what was flushed is then the old one's.
            if partition.log is log:
                log.flushed(end)
                partition.note_grown()

    def next_due_ms(self) -> float | None:
        return None if self._under_way else self._broker.next_flush_due_ms()

    def _failed(self, error: str, partitions: list[tuple[Partition, Log, Offset]], metadata: bool, now: Now) -> None:
        self._tell(FlushFailed(error))
        for partition, _, _ in partitions:
            self._broker.fail(partition, error)
        if metadata:
            self._metadata.fail(error, now)
