"""One record after the other, in the bytes of a batch, without an object for any of them.

`walk` goes on as long as nothing is strange, which is nearly always to the end; what is strange, or does not end here,
is for somebody slower to judge (`validation.py`). It is the loop that a batch of unequal records costs, so it reads
numbers of one and two bytes in place.

Numbers are varints: seven bits a byte, the lowest first, the highest bit says that another byte follows; their sign is
in the lowest bit (zigzag). Here they stay that way: even ones are not negative.
"""

from typing import TypeAlias

from klamm.errors import ErrorCode
from klamm.records.invalid import InvalidBatch

Body: TypeAlias = bytes | bytearray
Readable: TypeAlias = Body | memoryview

INT_BYTES = 5
LONG_BYTES = 10
NONE = -1
NULL = 1
"""A length of -1."""

LATEST_MS = 2**63 - 1

MOST_HEADERS = 65_536
"""In one record: each takes two bytes to send and a hundred to hold."""


class Times:
    """The timestamps of a batch, as zigzag differences from its base."""

    __slots__ = ("base", "bottom", "earliest", "high", "latest", "least_low", "low", "no_time", "top")

    def __init__(self, base: int, earliest: int, latest: int) -> None:
        # Before 1970 there is only -1, and nothing that does not fit 64 bits, whatever a topic allows.
        if earliest < 0:
            earliest = 0
        if latest > LATEST_MS:
            latest = LATEST_MS
        self.base = base
        self.earliest = earliest
        self.latest = latest
        self.high = self.low = NONE
        """The farthest after the base so far, and before it."""
        self.least_low = 1 << 70
        # What `walk` takes without another look: up to where after the base, and before it.
        self.top = self.bottom = self.no_time = NONE
        if base == -1:
            self.top = 0
        elif base >= earliest:
            self.top = 2 * (latest - base) if base <= latest else NONE
            self.bottom = 2 * (base - earliest) - 1
            self.no_time = 2 * base + 1

    def is_allowed(self, zigzag: int) -> bool:
        timestamp = self.base + signed(zigzag)
        return timestamp == -1 or self.earliest <= timestamp <= self.latest

    def note(self, zigzag: int) -> None:
        if zigzag & 1:
            self.low = max(self.low, zigzag)
            self.least_low = min(self.least_low, zigzag)
        else:
            self.high = max(self.high, zigzag)

    @property
    def youngest(self) -> int:
        return self.base + signed(self.least_low if self.high == NONE else self.high)


def walk(body: Body, at: int, index: int, last: int, times: Times, need_keys: bool) -> tuple[int, int, int]:
    """From record `index` at `at` on, but not beyond `last`: the index and position of the first that is strange or not
    all here, and how many headers were passed."""
    start = at
    headers = 0
    high, low, least_low = times.high, times.low, times.least_low
    top, bottom, no_time = times.top, times.bottom, times.no_time
    try:
        for index in range(index, last):  # noqa: B020
            start = at
            length = body[at]
            if length < 128:
                at += 1
            elif (second := body[at + 1]) < 128:
                length += (second << 7) - 128
                at += 2
            else:
                length, at = number_at(body, at)
            end = at + (length >> 1)

            time = body[at + 1]
            if time < 128:
                at += 2
            elif (second := body[at + 2]) < 128:
                time += (second << 7) - 128
                at += 3
            else:
                time, at = number_at(body, at + 1, LONG_BYTES)

            offset = body[at]
            if offset < 128:
                at += 1
            elif (second := body[at + 1]) < 128:
                offset += (second << 7) - 128
                at += 2
            else:
                offset, at = number_at(body, at)

            key = body[at]
            if key < 128:
                at += 1
            elif (second := body[at + 1]) < 128:
                key += (second << 7) - 128
                at += 2
            else:
                key, at = number_at(body, at)
            if not key & 1:
                at += key >> 1
            elif key != NULL or need_keys:
                break
            value = body[at]
            if value < 128:
                at += 1
            elif (second := body[at + 1]) < 128:
                value += (second << 7) - 128
                at += 2
            else:
                value, at = number_at(body, at)
            if not value & 1:
                at += value >> 1
            elif value != NULL:
                break

            count = body[at]
            at += 1
            if count:
                count, at = number_at(body, at - 1)
                if count & 1 or count >> 1 > MOST_HEADERS:
                    break
                at, left = walk_headers(body, at, count >> 1)
                if left:
                    break
                headers += count >> 1
            if at != end or length & 1 or offset != index << 1:
                break
            if time & 1:
                if time > low:
                    if time > bottom and time != no_time:
                        break
                    low = time
                if time < least_low:
                    least_low = time
            elif time > high:
                if time > top:
                    break
                high = time
        else:
            index, start = last, at
    except (IndexError, InvalidBatch):
        pass
    times.high, times.low, times.least_low = high, low, least_low
    return index, start, headers


def is_all_and_sound(view: memoryview, at: int, need_keys: bool) -> bool:
    """Whether the rest is one record, of a batch of one, with the batch's own time. If not, that says nothing: it has
    headers, for example. Many producers send nothing else, so this is short, and makes no objects."""
    try:
        length = view[at]
        if length < 128:
            at += 1
        else:
            length, at = number_at(view, at)
        if length != 2 * (len(view) - at) or view[at + 1] or view[at + 2]:
            return False
        key = view[at + 3]
        at += 4
        if key == NULL:
            if need_keys:
                return False
        elif key & 1 or key > 127:
            return False
        else:
            at += key >> 1
        value = view[at]
        if value < 128:
            at += 1
        else:
            value, at = number_at(view, at)
        if value & 1:
            return False
        at += value >> 1
        return at + 1 == len(view) and not view[at]
    except (IndexError, InvalidBatch):
        return False


def walk_headers(body: Body, at: int, count: int) -> tuple[int, int]:
    """The position behind so many headers, or behind the last one that is all here and sound; how many are left."""
    start = at
    size = len(body)
    try:
        while count:
            start = at
            name = body[at]
            if name < 128:
                at += 1
            else:
                name, at = number_at(body, at)
            if name & 1:
                break
            at += name >> 1
            value = body[at]
            if value < 128:
                at += 1
            else:
                value, at = number_at(body, at)
            if not value & 1:
                at += value >> 1
                if at > size:
                    break
            elif value != NULL:
                break
            count -= 1
        else:
            return at, 0
    except (IndexError, InvalidBatch):
        pass
    return start, count


def number_at(body: Readable, at: int, longest: int = INT_BYTES) -> tuple[int, int]:
    """A number and the position behind it. IndexError if it does not end here."""
    byte = body[at]
    number = byte & 127
    shift = 7
    while byte > 127:
        at += 1
        if shift == 7 * longest:
            raise too_long(longest)
        byte = body[at]
        number |= (byte & 127) << shift
        shift += 7
    if number >> BITS[longest]:
        raise too_long(longest)
    return number, at + 1


BITS = {INT_BYTES: 32, LONG_BYTES: 64}


def too_long(longest: int) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, f"a number of more than {BITS[longest]} bits or {longest} bytes")


def signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
