"""Walking over stored batches, from header to header or with all their bytes.

A header that cannot stand where it stands (a wrong length or format, offsets that go back, more bytes than the file
has) is `Damaged`; what comes after it cannot be known. Recovery cuts there if the bytes were never flushed. Everyone
else reports it: damaged bytes are never served, never guessed at.
"""

import re
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from klamm.errors import ErrorCode, KafkaError
from klamm.log.files import File
from klamm.records.batch import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    OVERHEAD_BYTES,
    Batch,
    read_header,
)
from klamm.records.crc import crc32c

CHUNK_BYTES = 4096
WHOLE_CHUNK_BYTES = 1024 * 1024

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta: what it takes to step over a batch.
_START = Struct(">qiibIhi")

LARGEST_GAP = 2**31
"""Compaction leaves gaps between offsets, but never larger than an index of the segment can say. The base offset stands
outside the CRC, so a gap is all that shows when it is wrong, and a small one cannot be told from compaction."""


class Damaged(KafkaError):  # noqa: N818
    """Stored bytes that cannot be what was written."""

    def __init__(self, path: str, position: int, why: str, *, is_short: bool = False) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, f"{path} is damaged at byte {position}: {why}")
        self.position = position
        self.is_short = is_short
        """Whether the file ends before the batch does, as it would after a write that was interrupted."""


class Step(NamedTuple):
    """One batch on the way: where it begins and ends, in bytes and in offsets."""

    position: int
    end: int
    base_offset: int
    next_offset: int


def steps(
    file: File, position: int, least_offset: int, end: int | None = None, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Step]:
    """From batch to batch up to `end`. Reads only headers, several at a time where batches are small."""
    if end is None:
        end = file.size
    chunk, chunk_position = b"", position
    while position < end:
        at = position - chunk_position
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_position, at = file.read(position, chunk_bytes), position, 0
            if len(chunk) < HEADER_BYTES:
                raise Damaged(file.path, position, f"{len(chunk)} bytes are not a header", is_short=True)
        base_offset, length, _, magic, _, _, last_offset_delta = _START.unpack_from(chunk, at)
        next_position = position + length + OVERHEAD_BYTES
        if (
            magic != MAGIC
            or length < HEADER_BYTES - OVERHEAD_BYTES
            or base_offset < least_offset
            or (least_offset and base_offset - least_offset > LARGEST_GAP)
            or last_offset_delta < 0
            or next_position > end
        ):
            raise _nonsense(file, position, read_header(chunk, at), least_offset, end)
        least_offset = base_offset + last_offset_delta + 1
        yield Step(position, next_position, base_offset, least_offset)
        position = next_position


def walk_over(file: File, position: int, least_offset: int, end: int, end_offset: int) -> None:
    """Make sure that only whole batches stand between these positions and offsets. `steps` without stops."""
    chunk, chunk_position = b"", position
    unpack = _START.unpack_from
    while position < end:
        at = position - chunk_position
        if at + HEADER_BYTES > len(chunk):
            # After a large batch only the header of the next is needed.
            chunk = file.read(position, CHUNK_BYTES if at < CHUNK_BYTES else HEADER_BYTES)
            chunk_position, at = position, 0
            if len(chunk) < HEADER_BYTES:
                raise Damaged(file.path, position, f"{len(chunk)} bytes are not a header", is_short=True)
        base_offset, length, _, magic, _, _, last_offset_delta = unpack(chunk, at)
        next_position = position + length + OVERHEAD_BYTES
        next_offset = base_offset + last_offset_delta + 1
        if (
            magic != MAGIC
            or length < HEADER_BYTES - OVERHEAD_BYTES
            or base_offset < least_offset
            or last_offset_delta < 0
            or next_position > end
            or next_offset > end_offset
        ):
            raise _nonsense(file, position, read_header(chunk, at), least_offset, end)
        least_offset = next_offset
        position = next_position


def step_at(file: File, position: int) -> Step:
    """The batch at a position that is known to begin one."""
    for step in steps(file, position, 0, chunk_bytes=HEADER_BYTES):
        return step
    raise Damaged(file.path, position, "the file ends here")


def headers(file: File, position: int, least_offset: int, end: int | None = None) -> Iterator[tuple[int, Batch]]:
    """Like `steps`, with whole headers."""
    if end is None:
        end = file.size
    chunk, chunk_position = b"", position
    while position < end:
        at = position - chunk_position
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_position, at = file.read(position, CHUNK_BYTES), position, 0
            if len(chunk) < HEADER_BYTES:
                raise Damaged(file.path, position, f"{len(chunk)} bytes are not a header", is_short=True)
        batch = read_header(chunk, at)
        if not _may_stand(batch, position, least_offset, end):
            raise _nonsense(file, position, batch, least_offset, end)
        yield position, batch
        least_offset = batch.next_offset
        position += batch.size_bytes


def batch_at(file: File, position: int) -> tuple[Batch, bytes]:
    """One whole batch, with a header and a CRC that can be believed."""
    for _, batch, view in whole_batches(file, position, 0, step_at(file, position).end):
        return batch, bytes(view)
    raise Damaged(file.path, position, "the file ends here")


def whole_batches(
    file: File, position: int, least_offset: int, end: int | None = None
) -> Iterator[tuple[int, Batch, memoryview]]:
    """Every batch with all its bytes, its CRC checked. Files are read in large chunks."""
    if end is None:
        end = file.size
    chunk, at = memoryview(b""), 0
    while position < end:
        if len(chunk) - at < HEADER_BYTES:
            chunk, at = memoryview(file.read(position, min(WHOLE_CHUNK_BYTES, end - position))), 0
            if len(chunk) < HEADER_BYTES:
                raise Damaged(file.path, position, f"{len(chunk)} bytes are not a header", is_short=True)
        batch = read_header(chunk, at)
        size = batch.size_bytes
        if not _may_stand(batch, position, least_offset, end):
            raise _nonsense(file, position, batch, least_offset, end)
        if len(chunk) - at < size:
            chunk, at = memoryview(file.read(position, min(max(size, WHOLE_CHUNK_BYTES), end - position))), 0
        view = chunk[at : at + size]
        if crc32c(view[ATTRIBUTES_AT:]) != batch.crc:
            raise Damaged(file.path, position, f"the CRC of {batch} does not match its bytes")
        yield position, batch, view
        least_offset = batch.next_offset
        position += size
        at += size


def next_whole_batch(file: File, position: int, least_offset: int, end: int | None = None) -> Step | None:
    """The first whole batch that begins at or after this position, whatever stands before it: one whose header may
    stand there and whose CRC is right. Where batches are damaged, their lengths say nothing."""
    if end is None:
        end = file.size
    # The upper half of the base offset is that of the offset due, and the format has one number.
    begins = re.compile(re.escape((least_offset >> 32).to_bytes(4, "big")) + b".{12}" + bytes([MAGIC]), re.DOTALL)
    while end - position >= HEADER_BYTES:
        chunk = file.read(position, min(WHOLE_CHUNK_BYTES, end - position))
        at = 0
        while found := begins.search(chunk, at):
            at = found.start() + 1
            if step := _whole_at(file, position + found.start(), least_offset, end):
                return step
        if len(chunk) < HEADER_BYTES:
            return None
        position += max(len(chunk) - HEADER_BYTES + 1, 1)
    return None


def _whole_at(file: File, position: int, least_offset: int, end: int) -> Step | None:
    header = file.read(position, HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return None
    batch = read_header(header)
    if not _may_stand(batch, position, least_offset, end):
        return None
    if crc32c(file.read(position, batch.size_bytes)[ATTRIBUTES_AT:]) != batch.crc:
        return None
    return Step(position, position + batch.size_bytes, batch.base_offset, batch.next_offset)


def time_of(batch: Batch) -> int:
    """The youngest record's time; -1 if no record is left, whatever the header still says."""
    return batch.max_timestamp if batch.count else NO_TIMESTAMP


def _may_stand(batch: Batch, position: int, least_offset: int, end: int) -> bool:
    return (
        batch.magic == MAGIC
        and batch.size_bytes >= HEADER_BYTES
        and batch.base_offset >= least_offset
        and (not least_offset or batch.base_offset - least_offset <= LARGEST_GAP)
        and batch.last_offset_delta >= 0
        and position + batch.size_bytes <= end
    )


def _nonsense(file: File, position: int, batch: Batch, least_offset: int, end: int) -> Damaged:
    if batch.magic == MAGIC and position + batch.size_bytes > end:
        return Damaged(file.path, position, f"{batch} ends after {end - position} bytes", is_short=True)
    if batch.magic == MAGIC and batch.base_offset < least_offset:
        return Damaged(file.path, position, f"{batch} where offset {least_offset} is due")
    return Damaged(file.path, position, "no batch begins here")
