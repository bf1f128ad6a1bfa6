"""Every batch of a log that nobody has open: what is damaged, what is missing, and how a segment is mended on purpose.

A log is mended by leaving out what is damaged. In its place stands a batch without records that spans the same offsets,
as compaction leaves one, so that all other records keep theirs and nothing that reads the log finds a hole. The segment
as it was is kept beside it, in a file that ends in `.cut`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from klamm.ids import NO_EPOCH, Epoch, Offset
from klamm.log.files import Files
from klamm.log.names import CUT, INDEX, LOG, TIME_INDEX, file_name, offset_of
from klamm.log.salvage import COPY_BYTES, free_name
from klamm.log.walking import Damaged, next_whole_batch, whole_batches
from klamm.records.batch import ATTRIBUTES_AT, HEADER_BYTES, MAGIC, OVERHEAD_BYTES, Batch
from klamm.records.crc import crc32c

MENDED = ".mended.tmp"
"""A segment while it is written anew; the next start removes what is left of one."""
_HEADER = Struct(">qiibIhiqqqhii")


class Hole(NamedTuple):
    """Bytes of a segment that are no whole batches, and the offsets that belong there."""

    segment: Offset
    start: int
    end: int
    offset: Offset
    next_offset: Offset
    """Where the log goes on; the same as `offset` where it ends with the damage."""
    epoch: Epoch
    why: str

    @property
    def is_at_end(self) -> bool:
        return self.next_offset == self.offset


@dataclass(slots=True)
class SeenLog:
    """What a log consists of, damaged or not."""

    start_offset: Offset = 0
    end_offset: Offset = 0
    batches: int = 0
    latest_epoch: Epoch = NO_EPOCH
    bases: list[Offset] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Files that were set aside."""


def seen_log(files: Files, directory: str, *, whole_from: Offset | None = 0) -> SeenLog:
    """Read all of it, whatever its checkpoints and indexes say."""
    seen = SeenLog()
    for _ in walk(files, directory, seen, whole_from=whole_from):
        pass
    return seen


def walk(
    files: Files, directory: str, seen: SeenLog, *, whole_from: Offset | None = 0
) -> Iterator[tuple[Offset, int, Batch, memoryview]]:
    """Every whole batch with its segment and position; the holes are noted on the way. From `whole_from` on a gap
    between two batches is one: compaction leaves such gaps, but none at the end of a segment. None: nowhere."""
    names = files.listing(directory) if files.exists(directory) else []
    seen.kept = [name for name in names if name.endswith(CUT)]
    seen.bases = sorted(base for base in (offset_of(name, LOG) for name in names) if base is not None)
    if seen.bases:
        seen.start_offset = seen.end_offset = seen.bases[0]
    for number, base in enumerate(seen.bases):
        if base > seen.end_offset:
            # What is missing belongs to the end of the segment before.
            before = seen.bases[number - 1]
            size = files.file(f"{directory}/{file_name(before, LOG)}").size
            why = f"{directory}: no segment holds the offsets from {seen.end_offset} to {base - 1}"
            seen.holes.append(Hole(before, size, size, seen.end_offset, base, seen.latest_epoch, why))
        seen.end_offset = max(seen.end_offset, base)
        limit = seen.bases[number + 1] if number + 1 < len(seen.bases) else None
        yield from _walk_segment(files, directory, base, limit, seen, whole_from)


def _walk_segment(
    files: Files, directory: str, base: Offset, limit: Offset | None, seen: SeenLog, whole_from: Offset | None
) -> Iterator[tuple[Offset, int, Batch, memoryview]]:
    file = files.file(f"{directory}/{file_name(base, LOG)}")
    position = 0
    while position < file.size:
        try:
            for at, batch, view in whole_batches(file, position, seen.end_offset):
                if batch.leader_epoch < seen.latest_epoch:
                    raise Damaged(file.path, at, f"{batch} after epoch {seen.latest_epoch}")
                if limit is not None and batch.next_offset > limit:
                    raise Damaged(file.path, at, f"{batch}, and the next segment begins at {limit}")
                if batch.base_offset > seen.end_offset and whole_from is not None and seen.end_offset >= whole_from:
                    why = f"{file.path}: no batch holds the offsets from {seen.end_offset} to {batch.base_offset - 1}"
                    hole = Hole(base, at, at, seen.end_offset, batch.base_offset, seen.latest_epoch, why)
                    seen.holes.append(hole)
                yield base, at, batch, view
                position, seen.end_offset, seen.latest_epoch = at + len(view), batch.next_offset, batch.leader_epoch
                seen.batches += 1
        except Damaged as damage:
            step = next_whole_batch(file, position + 1, seen.end_offset)
            if step is not None and limit is not None and step.next_offset > limit:
                step = None
            end, next_offset = (step.position, step.base_offset) if step else (file.size, seen.end_offset)
            hole = Hole(base, position, end, seen.end_offset, next_offset, seen.latest_epoch, str(damage))
            seen.holes.append(hole)
            position, seen.end_offset = end, next_offset


def split_at(offsets: Sequence[Offset], holes: Sequence[Hole]) -> list[Hole]:
    """The same holes, none of which spans one of these offsets: where a batch has to begin, one will."""
    found = []
    for hole in holes:
        start = hole
        for offset in sorted(set(offsets)):
            if start.offset < offset < start.next_offset:
                found.append(start._replace(next_offset=offset))
                start = start._replace(start=start.end, offset=offset)
        found.append(start)
    return found


def mend_segment(files: Files, directory: str, base: Offset, holes: Sequence[Hole]) -> str:
    """Write the segment anew without these, and return the name under which it is kept as it was."""
    path = f"{directory}/{file_name(base, LOG)}"
    old = files.file(path)
    kept = free_name(files, directory, file_name(base, LOG))
    copy = files.file(f"{directory}/{kept}")
    mended = files.file(path + MENDED)
    position = 0
    for hole in (*holes, None):
        end = hole.start if hole is not None else old.size
        while position < end:
            piece = old.read(position, min(COPY_BYTES, end - position))
            mended.append(piece)
            position += len(piece)
        if hole is not None:
            if hole.next_offset > hole.offset:
                mended.append(empty_batch(hole.offset, hole.next_offset, max(hole.epoch, 0)))
            position = hole.end
    mended.append(b"")
    while copy.size < old.size:
        copy.append(old.read(copy.size, min(COPY_BYTES, old.size - copy.size)))
    copy.append(b"")
    files.flush([copy, mended])
    old.close()
    mended.rename(path)
    for kind in (INDEX, TIME_INDEX):
        files.remove(f"{directory}/{file_name(base, kind)}")
    files.flush([mended])
    for file in (copy, mended):
        file.close()
    return kept


def empty_batch(offset: Offset, next_offset: Offset, epoch: Epoch) -> bytes:
    """One without records that spans these offsets."""
    batch = bytearray(
        _HEADER.pack(
            offset, HEADER_BYTES - OVERHEAD_BYTES, epoch, MAGIC, 0, 0, next_offset - offset - 1, -1, -1, -1, -1, -1, 0
        )
    )
    crc_at = ATTRIBUTES_AT - 4
    batch[crc_at:ATTRIBUTES_AT] = crc32c(memoryview(batch)[ATTRIBUTES_AT:]).to_bytes(4, "big")
    return bytes(batch)
