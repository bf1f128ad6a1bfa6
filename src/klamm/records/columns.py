"""Runs of records that are built alike, as counters, sensors' readings and benchmarks are: checked as columns.

If the record here is followed by others of its length, then the byte that says so stands in all of them at the same
distance, and so do the lengths of keys, values and headers. A slice with a stride takes such a column out, and one
comparison proves it. Offsets count up, so their columns are known beforehand; the time is the one column that varies.
A hundred records cost about as much as ten.
"""

from klamm.records.invalid import InvalidBatch
from klamm.records.walking import LONG_BYTES, NULL, Body, Times, number_at

SHORTEST_RUN = 12
LONGEST_RUN = 1024
_LONGEST_RUN_BYTES = 128 << 10
"""More would not fit the cache that a column is read from again and again."""

_MOST_COLUMNS = 48

_UNIFORM = [bytes((byte,)) * LONGEST_RUN for byte in range(256)]
"""The columns in which a byte does not change, by that byte."""

# The bytes of offsets, from the lowest: the first repeats after 64 records, the second after 8192.
_FIRST = bytes(2 * index & 127 for index in range(64)) * (LONGEST_RUN // 64 + 1)
_FIRST_OF_MORE = bytes(byte | 128 for byte in _FIRST)
_SECOND_CYCLE = 8192
_ONE_BYTE_ENDS = 64
_WIDTH_ENDS = ((2, 8192), (3, 1 << 20), (4, 1 << 27), (5, 1 << 31))
# As the last byte, and with another one behind it.
_SECOND = bytes(index >> 6 & 127 for index in range(_SECOND_CYCLE))
_SECONDS = (_SECOND, bytes(byte | 128 for byte in _SECOND))

# Of the first byte of times that are not negative: those up to some byte, in numbers of one byte and of more.
_UP_TO = [bytes(range(0, byte + 1, 2)) for byte in range(128)]
_UP_TO_OF_MORE = [bytes(range(128, 128 + byte + 1, 2)) for byte in range(128)]


def length_of_run(body: Body, at: int, index: int, last: int, times: Times, need_keys: bool) -> tuple[int, int]:
    """How many records from `index` at `at` on are alike and sound, and how many bytes each takes. 0 if it is not worth
    it: that says nothing about them."""
    if not _may_repeat(body, at):
        return 0, 0
    shape = _shape_at(body, at, need_keys)
    if shape is None:
        return 0, 0
    size, time, offset, behind_offset, same = shape
    width, width_end = width_of_offsets(index)
    if width != behind_offset - offset:
        return 0, 0
    room = min(len(body) - at, _LONGEST_RUN_BYTES) // size
    length = min(last - index, room, LONGEST_RUN, width_end - index)
    if length < SHORTEST_RUN:
        return 0, 0
    end = at + length * size
    for distance in same:
        byte = body[at + distance]
        column = body[at + distance : end : size]
        if column != _UNIFORM[byte][:length]:
            length -= len(column.lstrip(_UNIFORM[byte][:1]))
            if length < SHORTEST_RUN:
                return 0, 0
            end = at + length * size
    for distance, wanted in enumerate(bytes_of_offsets(index, length, width), offset):
        if body[at + distance : end : size] != wanted:
            return 0, 0
    if not _note_times(body, at + time, offset - time, length, size, times):
        return 0, 0
    return length, size


def _may_repeat(body: Body, at: int) -> bool:
    """Whether two more records have lengths like the one here: a look before the work."""
    try:
        first, second = body[at], body[at + 1]
        if first < 128:
            size = 1 + (first >> 1)
        elif second < 128:
            size = 2 + (first >> 1 & 63) + (second << 6)
        else:
            return True
        return first == body[at + size] == body[at + 2 * size]
    except IndexError:
        return False


def _shape_at(body: Body, at: int, need_keys: bool) -> tuple[int, int, int, int, list[int]] | None:
    """Of the record here: its size, where its time and offset stand and what follows them, and all distances at which
    records like it have the same byte."""
    try:
        length, first = body[at], body[at + 1]
        if length < 128:
            same, time = [0], 2
        elif first < 128:
            length += (first << 7) - 128
            same, time = [0, 1], 3
        else:
            length, position = number_at(body, at)
            time = position - at + 1
            same = list(range(time - 1))
        size = time - 1 + (length >> 1)
        offset = time + 1
        if body[at + time] > 127:
            # All of a time but its first byte: it changes every 64 ms.
            offset = number_at(body, at + time, LONG_BYTES)[1] - at
            same += range(time + 1, offset)
        distance = behind_offset = offset + 1 if body[at + offset] < 128 else number_at(body, at + offset)[1] - at
        for is_key in (True, False):
            number = body[at + distance]
            same.append(distance)
            distance += 1
            if number > 127:
                number, position = number_at(body, at + distance - 1)
                same += range(distance, position - at)
                distance = position - at
            if not number & 1:
                distance += number >> 1
            elif number != NULL or (is_key and need_keys):
                return None
        count = body[at + distance]
        same.append(distance)
        distance += 1
        if count:
            if count & 1 or count > _MOST_COLUMNS:
                return None
            distance = _header_columns(body, at, distance, count >> 1, same)
    except (IndexError, InvalidBatch):
        return None
    if length & 1 or distance != size:
        return None
    return size, time, offset, behind_offset, same


def _header_columns(body: Body, at: int, distance: int, count: int, same: list[int]) -> int:
    for is_value in (False, True) * count:
        number, position = number_at(body, at + distance)
        same += range(distance, position - at)
        distance = position - at
        if not number & 1:
            distance += number >> 1
        elif number != NULL or not is_value:
            return 0
    return distance


def width_of_offsets(index: int) -> tuple[int, int]:
    """How many bytes the offset of a record has, and up to which record only the first two of them change."""
    if index < _ONE_BYTE_ENDS:
        return 1, _ONE_BYTE_ENDS
    if index < _SECOND_CYCLE:
        return 2, _SECOND_CYCLE
    return next(width for width, end in _WIDTH_ENDS if index < end), (index | _SECOND_CYCLE - 1) + 1


def bytes_of_offsets(index: int, length: int, width: int) -> list[bytes]:
    """What they are from a record on, the first of all, then the second of all."""
    begin = index & 63
    if width == 1:
        return [_FIRST[begin : begin + length]]
    second = index & _SECOND_CYCLE - 1
    columns = [_FIRST_OF_MORE[begin : begin + length], _SECONDS[width > 2][second : second + length]]
    rest = index >> 13
    for left in range(width - 3, -1, -1):
        columns.append(bytes((rest & 127 | (128 if left else 0),)) * length)
        rest >>= 7
    return columns


def _note_times(body: Body, start: int, width: int, length: int, size: int, times: Times) -> bool:
    """Whether none of these times is negative or later than may be. Nearly always the last is the largest."""
    column = body[start : start + (length - 1) * size + 1 : size]
    highest = column[-1] & 127
    allowed = _UP_TO if width == 1 else _UP_TO_OF_MORE
    if highest & 1 or column.translate(None, allowed[highest]):
        highest = max(column) & 127
        if highest & 1 or column.translate(None, allowed[highest]):
            return False
    time = highest
    for distance in range(1, width):
        time |= (body[start + distance] & 127) << 7 * distance
    if time > times.top:
        return False
    times.high = max(times.high, time)
    return True
