"""Where every record starts. Each says how long it is, so they are found one after the other.

That is the only work left to Python a record, and three things make it less. Records of one length, as counters and
fixed-width rows are, form a run that one comparison over strided bytes proves: if the record here is as long as the
last, so is its successor's place known. Many batches are walked side by side, a record of each at a time. What is left
is a loop of a table and an addition.

A record's own bytes are not looked at. The walk over a batch has to end where the batch does, which also shows that it
never left it, because every step goes forward.
"""

import numpy as np

from klamm.codec.primitives import Buffer
from klamm.errors import ErrorCode
from klamm.pipeline.decoding.varints import Bytes, Numbers, numbers_at
from klamm.records.invalid import InvalidBatch

# How far a record with this first byte goes, its own prefix included; for a longer prefix, what the first byte adds.
_STEPS = tuple(1 + (first >> 1) if first < 128 else 2 + ((first & 127) >> 1) for first in range(256))

# The same for two bytes, the first in the lower half; 0 where the prefix is longer than that.
_FIRST, _SECOND = np.arange(65_536) & 255, np.arange(65_536) >> 8
_STEPS_OF_TWO: Numbers = np.array(_STEPS)[_FIRST] + np.where(_FIRST > 127, _SECOND << 6, 0)
_STEPS_OF_TWO[(_FIRST > 127) & (_SECOND > 127)] = 0

_SHORTEST_RUN = 16
_FIRST_WALK = 32
_FEWEST_SIDE_BY_SIDE = 48


def record_positions(buffer: Bytes, begins: list[int], ends: list[int], counts: list[int]) -> Numbers:
    """The positions of all records of these batches, whose records stand at `begins..ends` in `buffer`."""
    total = sum(counts)
    positions = np.empty(total, dtype=np.int64)
    if len(begins) >= _FEWEST_SIDE_BY_SIDE:
        _walk_side_by_side(buffer, begins, ends, counts, positions)
        return positions
    row = 0
    for begin, end, count in zip(begins, ends, counts, strict=True):
        _walk(buffer, begin, end, positions[row : row + count])
        row += count
    return positions


def _walk_side_by_side(
    buffer: Bytes, begins: list[int], ends: list[int], counts: list[int], positions: Numbers
) -> None:
    """One record of every batch at a time, until too few batches are left for that to pay."""
    count = np.array(counts, dtype=np.int64)
    row = np.cumsum(count) - count
    at, end = np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64)
    step = 0
    while at.size >= _FEWEST_SIDE_BY_SIDE:
        positions[row + step] = at
        at = _stepped(buffer, at)
        step += 1
        going = count > step
        if going.all():
            continue
        if not (at[~going] == end[~going]).all():
            raise _not_filled()
        at, end, row, count = at[going], end[going], row[going], count[going]
    for one_at, one_end, one_row, one_count in zip(
        at.tolist(), end.tolist(), row.tolist(), count.tolist(), strict=True
    ):
        if one_at > one_end:
            raise _not_filled()
        _walk(buffer, one_at, one_end, positions[one_row + step : one_row + one_count])


def _stepped(buffer: Bytes, at: Numbers) -> Numbers:
    """From every record to the next."""
    prefixes = buffer.take(at + 1, mode="clip").astype(np.uint16) << 8 | buffer.take(at, mode="clip")
    steps: Numbers = _STEPS_OF_TWO.take(prefixes)
    if steps.all():
        return at + steps
    lengths, behind = numbers_at(buffer, at)
    return behind + (lengths >> 1)


def _walk(buffer: Bytes, begin: int, end: int, positions: Numbers) -> None:
    """Runs where there are runs; after each failure to find one, a longer walk before the next attempt."""
    body = buffer.data
    count, done, at, walk = len(positions), 0, begin, _FIRST_WALK
    try:
        while done < count:
            length, step = _length_of_run(buffer, at, end, count - done)
            if length >= _SHORTEST_RUN:
                positions[done : done + length] = np.arange(at, at + length * step, step)
                at += length * step
            else:
                length = min(walk, count - done)
                at, found = _walked(body, at, length)
                positions[done : done + length] = found
                walk *= 4
            done += length
    except IndexError as error:
        raise _not_filled() from error
    if at != end:
        raise _not_filled()


def _length_of_run(buffer: Bytes, at: int, end: int, most: int) -> tuple[int, int]:
    """How many records from here on are as long as the first, and how long that is."""
    step, prefix = _step_at(buffer, at)
    fits = min(most, (end - at) // step)
    if fits < _SHORTEST_RUN:
        return 0, step
    same = buffer[at : at + fits * step : step] == buffer[at]
    for index in range(1, prefix):
        same &= buffer[at + index : at + fits * step : step] == buffer[at + index]
    return fits if same.all() else int(same.argmin()), step


def _walked(body: Buffer, at: int, count: int) -> tuple[int, list[int]]:
    steps = _STEPS
    found: list[int] = []
    append = found.append
    for _ in range(count):
        append(at)
        first = body[at]
        if first < 128:
            at += steps[first]
        elif (second := body[at + 1]) < 128:
            at += steps[first] + (second << 6)
        else:
            at += _step_at(body, at)[0]
    return at, found


def _step_at(body: "Buffer | Bytes", at: int) -> tuple[int, int]:
    """How far the record at `at` goes, and how many bytes of that its length takes."""
    number, shift, start = 0, 0, at
    while True:
        byte = int(body[at])
        number |= (byte & 127) << shift
        at += 1
        shift += 7
        if byte < 128:
            return at - start + (number >> 1), at - start
        if shift == 35:
            raise InvalidBatch(ErrorCode.INVALID_RECORD, "a record whose length takes more than 5 bytes")


def _not_filled() -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, "the records do not end where their batch does")
