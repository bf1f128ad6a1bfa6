"""What the quorum asks of its node, in the order in which it has to happen: flush these, then apply those.

An order made into data. Whoever performs it cannot apply what is not committed, because only committed batches are in
here; and nothing is committed before `Raft.flushed` was told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from klamm.ids import Epoch, Offset
from klamm.log.files import File
from klamm.metadata.records import MetadataRecord


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
    records: Sequence[MetadataRecord] = ()


@dataclass(slots=True)
class Ready:
    flush: Flush | None = None
    committed: list[CommittedBatch] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.flush is not None or bool(self.committed)
