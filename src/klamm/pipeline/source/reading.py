"""What a task does: read one range, and where records turn out to be missing, say which.

Planning looked at the logs a moment before. Retention may have moved on since, a topic may be gone, and a log may have
been cut; a broker that fails in between is not noticed here at all (`kafka/fetching.py` asks another).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.access import Access
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST
from klamm.pipeline.kafka.problems import EndNotReached, OutOfRange, TopicGone
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.source.losses import CUT, DELETED, RETENTION, Loss, report

if TYPE_CHECKING:
    import pyarrow as pa


def read(access: Access, piece: Range, include_headers: bool, fails: bool) -> "Iterator[pa.RecordBatch]":
    left: Range | None = piece
    while left is not None:
        progress = _Progress(left.start)
        try:
            yield from progress.noted(access.rows(left, include_headers))
            return
        except OutOfRange as problem:
            left = _after_hole(access, left, problem.offset, fails)
        except TopicGone:
            report([_lost(left, progress.position, left.end, DELETED)], fails)
            return
        except EndNotReached as problem:
            report([_lost(left, problem.offset, left.end, CUT)], fails)
            return


@dataclass(slots=True)
class _Progress:
    position: int

    def noted(self, rows: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in rows:
            yield batch
            if batch.num_rows:
                self.position = batch.column(4)[-1].as_py() + 1


def _after_hole(access: Access, piece: Range, offset: int, fails: bool) -> Range | None:
    """What is left to read where `offset` is not in the log. None: nothing."""
    key = TopicPartition(piece.topic, piece.partition)
    earliest, latest = access.offsets({key: EARLIEST}).get(key), access.offsets({key: LATEST}).get(key)
    if earliest is None or latest is None:
        report([_lost(piece, offset, piece.end, DELETED)], fails)
        return None
    if offset < earliest:
        begin = min(earliest, piece.end)
        if not piece.may_begin_later:
            report([_lost(piece, offset, begin, RETENTION)], fails)
        return replace(piece, start=begin) if begin < piece.end else None
    if offset > latest:
        report([_lost(piece, offset, piece.end, CUT)], fails)
        return None
    # It is there after all: whoever said otherwise did not lead any more.
    return replace(piece, start=offset)


def _lost(piece: Range, start: int, end: int, why: str) -> Loss:
    return Loss(piece.topic, piece.partition, start, max(start, end - 1), why)
