"""Group commit: one flush at a time, for everything that waits for the disk.

While a flush is under way, more appends gather; the next flush takes them all. So under load one flush serves many
producers, and alone a producer waits for exactly one.

Everybody who takes part brings a group of files: the metadata log first, since the whole cluster may wait for it, then
partitions, then copies of a compaction. An owner's records count as flushed when every file of its group is on disk,
whatever became of the others. A failed flush is never tried again: the system may have dropped the pages and would call
the second try a success. The log concerned goes offline, and nothing of it was acknowledged; the others go on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

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


@dataclass(slots=True)
class _MetadataLog:
    end: Offset


@dataclass(slots=True)
class _PartitionLog:
    partition: Partition
    log: Log
    end: Offset


class Flushing:
    def __init__(self, broker: Broker, metadata: Metadata, tell: Tell) -> None:
        self._broker = broker
        self._metadata = metadata
        self._tell = tell
        self._token = 0
        self._owners: list[_MetadataLog | _PartitionLog | FlushWish] = []
        """In the order of their groups; nobody while no flush is under way."""

    def next_flush(self, now: Now) -> Flush | None:
        """The flush to begin now, if one is wanted and none is under way."""
        if self._owners:
            return None
        groups: list[list[File]] = []
        wanted = self._metadata.files_to_flush()
        if wanted is not None:
            groups.append(wanted[0])
            self._owners.append(_MetadataLog(wanted[1]))
        for partition in self._broker.unflushed.take(now):
            try:
                files, end = self._broker.files_to_flush(partition)
            except DiskFailed as error:
                self._broker.disk_failed(partition, error)
                continue
            groups.append(files)
            self._owners.append(_PartitionLog(partition, partition.log, end))
        if self._broker.flush_wishes:
            wishes, self._broker.flush_wishes = self._broker.flush_wishes, []
            for wish in wishes:
                if not wish.partition.deleted:
                    groups.append(list(wish.files))
                    self._owners.append(wish)
        if not self._owners:
            return None
        self._token += 1
        return Flush(self._token, groups)

    def done(self, token: int, failures: Mapping[int, str], now: Now) -> None:
        """It has ended; the groups of these numbers are not on disk."""
        assert self._owners and token == self._token
        owners, self._owners = self._owners, []
        failed: list[str] = []
        for number, owner in enumerate(owners):
            error = failures.get(number)
            if isinstance(owner, FlushWish):
                owner.done, owner.error = True, error
            elif isinstance(owner, _PartitionLog) and owner.partition.deleted:
                continue
            elif error is None:
                self._flushed(owner)
            else:
                failed.append(error)
                self._failed(owner, error, now)
        if failed:
            self._tell(FlushFailed(len(failed), failed[0]))

    def _flushed(self, owner: _MetadataLog | _PartitionLog) -> None:
        if isinstance(owner, _MetadataLog):
            self._metadata.flushed(owner.end)
        elif owner.partition.log is owner.log:
            # (A log that failed meanwhile may have been opened anew: what was flushed is then the old one's.)
            owner.log.flushed(owner.end)
            owner.partition.note_grown()

    def _failed(self, owner: _MetadataLog | _PartitionLog, error: str, now: Now) -> None:
        if isinstance(owner, _MetadataLog):
            self._metadata.fail(error, now)
        else:
            self._broker.fail(owner.partition, error)

    def next_due_ms(self) -> float | None:
        return None if self._owners else self._broker.unflushed.next_due_ms()
