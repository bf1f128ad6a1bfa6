"""One number of every record, decoded for all records at once.

A varint carries seven bits a byte, the lowest first; the highest bit says that another byte follows. Most numbers in a
record take one byte or two, so the first two steps work on whole columns and the rest only on those that go on.

Positions are not checked here: one that has run out of the buffer reads its last byte. Positions only ever grow, so the
caller sees at the end of the record that it went too far, and one comparison a record is enough.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from klamm.errors import ErrorCode
from klamm.records.invalid import InvalidBatch

Bytes: TypeAlias = NDArray[np.uint8]
Numbers: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

INT_BYTES = 5
LONG_BYTES = 10


def numbers_at(buffer: Bytes, positions: Numbers, longest: int = INT_BYTES) -> tuple[Numbers, Numbers]:
    """The varints that start at `positions`, their signs still in the lowest bit; and the positions behind them."""
    first = buffer.take(positions, mode="clip")
    behind = positions + 1
    if first.max() < 128:
        return first.astype(np.int64), behind
    second = buffer.take(behind, mode="clip")
    goes_on = first >> 7
    numbers = (first & 127) + ((second & 127).astype(np.int64) << 7) * goes_on
    behind += goes_on
    open_ends = (goes_on & (second >> 7)).nonzero()[0]
    if open_ends.size:
        _read_on(buffer, numbers, behind, open_ends, longest)
    return numbers, behind


def signed(zigzag: Numbers) -> Numbers:
    return (zigzag.view(np.uint64) >> 1).view(np.int64) ^ -(zigzag & 1)


def _read_on(buffer: Bytes, numbers: Numbers, behind: Numbers, rows: NDArray[np.intp], longest: int) -> None:
    """The third byte and those after it, for the rows that have them."""
    for index in range(2, longest):
        byte = buffer.take(behind[rows], mode="clip").astype(np.int64)
        if index == LONG_BYTES - 1 and byte.max() > 1:
            break
        numbers[rows] |= (byte & 127) << 7 * index
        behind[rows] += 1
        rows = rows[byte > 127]
        if not rows.size:
            return
    raise InvalidBatch(ErrorCode.INVALID_RECORD, f"a number of more than {longest} bytes")
