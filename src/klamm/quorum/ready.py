"""What the quorum asks of its node, in the order in which it has to happen.

An order made into data. Whoever performs it cannot apply what is not committed, because only committed batches are in
here; and this node's part of a majority is not counted before `Raft.flushed` was told.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from klamm.ids import Epoch, Offset
from klamm.log.files import File
from klamm.metadata.records import MetadataRecord
from klamm.quorum.messages import Outgoing


@dataclass(slots=True)
class Flush:
    """Bring these files to the disk, then tell `Raft.flushed(up_to)`."""

    files: list[File]
    up_to: Offset


@dataclass(slots=True)
class CommittedBatch:
    """One batch of the log, applied as a whole. A control batch has no records and is told for its offset."""

    base_offset: Offset
    last_offset: Offset
    epoch: Epoch
    records: Iterable[MetadataRecord] = ()


@dataclass(slots=True)
class SnapshotToLoad:
    """Everything up to and with this offset. It takes the place of whatever was applied before."""

    offset: Offset
    epoch: Epoch
    records: Iterator[MetadataRecord]


@dataclass(slots=True)
class Ready:
    checkpoint: bool = False
    """Write the checkpoint of recovery points, before anything else and before the step ends."""
    flush: Flush | None = None
    requests: list[Outgoing] = field(default_factory=list)
    snapshot: SnapshotToLoad | None = None
    """Comes without committed batches: those after it are in the next one."""
    committed: list[CommittedBatch] = field(default_factory=list)

    def __bool__(self) -> bool:
        return (
            self.checkpoint
            or self.flush is not None
            or bool(self.requests)
            or self.snapshot is not None
            or bool(self.committed)
        )
