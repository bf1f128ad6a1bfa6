"""Records of unequal lengths: their first bytes are lined up, and then checked as columns.

Where a record begins is known only when the length of the one before was read, so one loop goes from record to record,
and does nothing else than take its head: a fixed number of bytes, whatever they mean. What the loop in `walking.py`
asks of each record is then asked of columns of heads: their times have equally many bytes, their offsets are those that
count up, and a record's length is that of its key, its value and the numbers before them. For the last, the lengths of
all records stand in one number of thousands of bits, sixteen for each, and so does the rest: two numbers to compare.

Headers, other than none, and times before the batch's first are for somebody slower.
"""

from collections.abc import Callable
from itertools import compress, repeat
from operator import add, itemgetter
from struct import Struct, pack
from struct import error as struct_error
from typing import Any

from klamm.records.columns import bytes_of_offsets, width_of_offsets
from klamm.records.invalid import InvalidBatch
from klamm.records.walking import INT_BYTES, LONG_BYTES, NULL, Body, Times, number_at

LONGEST_TABLE = 1024
SHORTEST_TABLE = 24
"""Fewer are not worth the fifty calls that columns take."""

_TABLES: list[tuple[int, Callable[..., Any]]] = [(size, Struct(f"<BH{size}s").unpack_from) for size in (13, 29, 61)]
"""How long a head is, and what takes it: the byte before the record, the two with its length, and the head."""
_SLACK_BYTES = 2

_LANE_BITS = 16
_ONES = int.from_bytes(b"\x01\x00" * LONGEST_TABLE, "little")

_EVEN = bytes(range(0, 256, 2))
_ENDS, _GOES_ON = bytes(range(128)), bytes(range(128, 256))
"""The bytes that end a number, and the others."""
_UP_TO = [bytes(range(byte + 1)) for byte in range(256)]
_IS_SHORT = b"\x01" * 128 + bytes(128)
_IS_NULL = bytes((0, 1)) + bytes(254)

# Of the first byte of a key's length: where what follows the key is, and twice how long the key is.
_TOO_FAR = 255
_BEHIND_KEY = bytes(0 if byte == NULL else _TOO_FAR if byte & 1 or byte > 127 else byte >> 1 for byte in range(256))
_KEY_SIZE = bytes(0 if byte & 1 else byte for byte in range(256))


def _steps() -> list[int]:
    """How far a record goes whose length is in these two bytes, or in the first of them, which it includes. A negative
    one goes nowhere, so that the same record comes again, with an offset that is not the next."""
    numbers = list(range(2 + 64 * 128))
    steps: list[int] = []
    row = [0] * 256
    row[:128:2] = numbers[1:65]
    for begin in range(2, len(numbers), 64):
        row[128::2] = numbers[begin : begin + 64]
        steps += row
    return steps


_STEPS = _steps()


def pass_table(body: Body, at: int, index: int, last: int, times: Times, need_keys: bool) -> tuple[int, int]:
    """From record `index` at `at` on, but not beyond `last`: the index and position behind those that were found to be
    sound. `index` and `at` if it is not worth it, or not all of them are: that says nothing about them."""
    offset_bytes, offsets_end = width_of_offsets(index)
    most = min(last - index, LONGEST_TABLE, offsets_end - index)
    size, unpack = _table_for(body, at)
    if unpack is None or at == 0 or most < SHORTEST_TABLE:
        return index, at
    cells: list[Any] = []
    steps = _STEPS
    # One byte before the record: the last of the one before, which says how many headers that has.
    end = at - 1
    try:
        for _ in repeat(None, most):
            row = unpack(body, end)
            end += steps[row[1]]
            cells += row
    except (struct_error, IndexError):
        # It is too near to the end, or its length has more than two bytes.
        pass
    if end >= len(body):
        end -= steps[cells[-2]]
        del cells[-3:]
    if len(cells) < 3 * SHORTEST_TABLE or any(cells[3::3]) or body[end]:
        return index, at
    lengths = pack(f"<{len(cells) // 3}H", *cells[1::3])
    table = _aligned(cells[2::3], size, lengths)
    columns, count = _columns_of_times(table, size)
    if not columns or count < SHORTEST_TABLE:
        return index, at
    if 2 * count < len(lengths):
        lengths = lengths[: 2 * count]
        table = table[: count * size]
        end = at - 1 + sum(steps[length] for length in cells[1 : 3 * count : 3])
    offsets = bytes_of_offsets(index, count, offset_bytes)
    highest = _highest(columns)
    if highest > times.top or not _are_sound(table, size, 1 + len(columns), offsets, lengths, need_keys):
        return index, at
    times.high = max(times.high, highest)
    return index + count, end + 1


def _table_for(body: Body, at: int) -> tuple[int, Callable[..., Any] | None]:
    """For records that are about like the one here, up to the length of its value."""
    try:
        position = number_at(body, at)[1] + 1
        position = number_at(body, position, LONG_BYTES)[1]
        position = number_at(body, position)[1]
        key, position = number_at(body, position)
    except (IndexError, InvalidBatch):
        return 0, None
    if not key & 1:
        position += key >> 1
    for size, unpack in _TABLES:
        if position - at + _SLACK_BYTES <= size:
            return size, unpack
    return 0, None


def _aligned(heads: list[bytes], size: int, lengths: bytes) -> bytes:
    """The table. Where a length has one byte, the byte of attributes was taken for its second. It means nothing, so any
    other may be there."""
    firsts = lengths[::2]
    if firsts.translate(None, _GOES_ON):
        for index in compress(range(len(heads)), firsts.translate(_IS_SHORT)):
            heads[index] = b"\0" + heads[index][:-1]
    return b"".join(heads)


def _columns_of_times(table: bytes, size: int) -> tuple[list[bytes], int]:
    """The bytes of times, from the lowest, of so many records whose times have as many as the first. None if one is
    negative or has more than others ever have."""
    columns: list[bytes] = []
    count = len(table) // size
    for at in range(1, 1 + INT_BYTES):
        column = table[at : count * size : size]
        columns.append(column)
        ends = column[0] < 128
        unlike = len(column.lstrip(_ENDS if ends else _GOES_ON))
        if unlike:
            count -= unlike
            columns = [each[:count] for each in columns]
        if ends:
            return [] if columns[0].translate(None, _EVEN) else columns, count
    return [], count


def _are_sound(table: bytes, size: int, at: int, offsets: list[bytes], lengths: bytes, need_keys: bool) -> bool:
    """Whether these are the offsets, at `at` of each head, and each length is that of what is in the record."""
    for wanted in offsets:
        if table[at::size] != wanted:
            return False
        at += 1
    keys = table[at::size]
    if need_keys and NULL in keys:
        return False
    at += 1
    ones = _ONES >> _LANE_BITS * (LONGEST_TABLE - len(keys))
    # What is as long in all of them: all to here, the first byte of the value's length, and the count of headers.
    rest = 2 * (at + 2) * ones
    if keys.count(keys[0]) == len(keys):
        at += _BEHIND_KEY[keys[0]]
        if at + 2 > size:
            return False
        rest += _KEY_SIZE[keys[0]] * ones
        firsts, seconds = table[at::size], table[at + 1 :: size]
    else:
        behind = keys.translate(_BEHIND_KEY)
        if at + max(behind) + 2 > size:
            return False
        rest += _lanes(keys.translate(_KEY_SIZE))
        take = itemgetter(*map(add, behind, range(at, at + len(table), size)))
        firsts, seconds = bytes(take(table)), bytes(take(table[1:]))
    values, goes_on = _numbers(_lanes(firsts, seconds), ones)
    if NULL in firsts:
        values -= _lanes(firsts.translate(_IS_NULL))
    all_lengths, _ = _numbers(int.from_bytes(lengths, "little"), ones)
    return values >= 0 and all_lengths == values + rest + 2 * goes_on


def _lanes(firsts: bytes, seconds: bytes = b"") -> int:
    lanes = bytearray(2 * len(firsts))
    lanes[::2] = firsts
    if seconds:
        lanes[1::2] = seconds
    return int.from_bytes(lanes, "little")


def _numbers(lanes: int, ones: int) -> tuple[int, int]:
    """Of two bytes each, or of one if it ends with the first; and a 1 where it does not. -1 if some have more."""
    goes_on = lanes >> 7 & ones
    numbers = lanes & 0x7F * ones | lanes >> 1 & 0x3F80 * goes_on
    return (-1 if lanes >> 15 & goes_on else numbers), goes_on


def _highest(columns: list[bytes]) -> int:
    """Of numbers, by their bytes from the lowest."""
    number = 0
    while True:
        *columns, column = columns
        # Nearly always the last is the highest.
        byte = column[-1]
        if column.translate(None, _UP_TO[byte]):
            byte = max(column)
        number = number << 7 | byte & 127
        if not columns:
            break
        first = column.find(byte)
        if column.count(byte) == len(column) - first:
            columns = [each[first:] for each in columns]
        else:
            table = bytearray(256)
            table[byte] = 1
            chosen = column.translate(table)
            columns = [bytes(compress(each, chosen)) for each in columns]
    return number
