"""Whether every client could read the records of a produced batch: asked before it is stored.

Exactly as many records as the header counts, and no byte behind them; offsets that count up from nothing; numbers,
keys, values and headers that end within their record, and names on all headers. Where readers differ (a length of -2, a
number of more than 32 bits) the strictest decides. Kafka asks the same, but for the offsets of a batch that is not
compressed. The byte of attributes that every record has means nothing, to Kafka or to us.

A batch may hold a million records, so none becomes an object: those that are built alike are checked as columns
(`columns.py`), others in one loop (`walking.py`), and only what is strange, or lies across two pieces, number by
number. It may be a gigabyte once it is decompressed, so it comes in pieces, and the work can stop between and within.
"""

from collections.abc import Generator
from typing import TypeAlias

from klamm.errors import ErrorCode
from klamm.records.batch import CODEC_BITS, HEADER_BYTES, Batch
from klamm.records.columns import SHORTEST_RUN, length_of_run
from klamm.records.compression import Packed
from klamm.records.decompression import MOST_BYTES, Piece, pieces
from klamm.records.invalid import InvalidBatch
from klamm.records.record import MOST_ERRORS, InvalidRecords
from klamm.records.walking import (
    INT_BYTES,
    LATEST_MS,
    LONG_BYTES,
    MOST_HEADERS,
    NULL,
    Times,
    number_at,
    signed,
    walk,
    walk_headers,
)

_Work: TypeAlias = Generator[None, None, None]


_FIRST_WALK = 32
_LONGEST_WALK = 4096

STEP_COST = 8192
"""A step of the work ends after so much, in records that are walked over: one or two milliseconds."""
STEPS_AT_ONCE = 2
"""So many are worth no copy: the batch is where it was read."""
_SHORT_WAY_BYTES = 2 << 20
_COST_OF_RUN = 8
_COST_OF_STRANGE = 32
_BYTES_FOR_ONE = 64
"""Decompressing so many costs as much as a record."""


def validated(
    view: memoryview,
    batch: Batch,
    need_keys: bool = False,
    earliest_ms: int = 0,
    latest_ms: int = LATEST_MS,
    most_bytes: int = MOST_BYTES,
) -> "int | Validation":
    """The largest timestamp of a producer's batch whose header was `checked`; or, where that takes long, the work that
    is still to be done. `InvalidBatch` if the batch must not be stored; see `Validation`."""
    if not batch.attributes & CODEC_BITS and len(view) <= _SHORT_WAY_BYTES:
        times = Times(batch.base_timestamp, earliest_ms, latest_ms)
        body, count = bytes(view[HEADER_BYTES:]), batch.count
        if count < SHORTEST_RUN:
            index, at, _ = walk(body, 0, 0, count, times, need_keys)
            if index == count and at == len(body):
                return times.youngest
        elif _is_sound(body, count, times, need_keys):
            return times.youngest
    validation = Validation(
        view, batch, need_keys=need_keys, earliest_ms=earliest_ms, latest_ms=latest_ms, most_bytes=most_bytes
    )
    for _ in range(STEPS_AT_ONCE):
        if validation.step():
            return validation.youngest
    return validation


def _is_sound(body: bytes, count: int, times: Times, need_keys: bool) -> bool:
    """The short way, for most batches: whether these are all the records there should be, none of them strange, and it
    did not take long to see. If not, that says nothing."""
    size = len(body)
    index = at = walked = 0
    length_of_walk = _FIRST_WALK
    while index < count and walked < STEPS_AT_ONCE * STEP_COST:
        if count - index >= SHORTEST_RUN and times.top >= 0:
            length, size_of_one = length_of_run(body, at, index, count, times, need_keys)
            if length:
                index += length
                at += length * size_of_one
                length_of_walk = _FIRST_WALK
                continue
        last = min(index + length_of_walk, count)
        length_of_walk *= 4
        before = index
        index, at, headers = walk(body, at, index, last, times, need_keys)
        if index < last:
            return False
        walked += index - before + headers
    return index == count and at == size


class Validation:
    """The look at all records of one batch, in steps.

    Records that are sound but not allowed (without a key where `need_keys`, with a timestamp outside
    `earliest_ms..latest_ms` that is not -1, which means none) or out of order are named, a hundred at most.
    """

    __slots__ = (
        "_at",
        "_body",
        "_code",
        "_cost",
        "_count",
        "_errors",
        "_index",
        "_need_keys",
        "_next_walk",
        "_packed",
        "_passed",
        "_pieces",
        "_times",
        "_work",
    )

    def __init__(
        self,
        view: memoryview,
        batch: Batch,
        *,
        need_keys: bool = False,
        earliest_ms: int = 0,
        latest_ms: int = LATEST_MS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._packed = Packed(view[HEADER_BYTES:])
        self._pieces = pieces(batch.attributes & CODEC_BITS, self._packed, most_bytes)
        self._count = batch.count
        self._need_keys = need_keys
        self._times = Times(batch.base_timestamp, earliest_ms, latest_ms)
        self._index = 0
        """Of the next record, which begins at `_at` of `_body`."""
        self._body: Piece = b""
        self._at = 0
        self._passed = 0
        """How many bytes came before this piece."""
        self._next_walk = _FIRST_WALK
        self._cost = 0
        self._code = ErrorCode.INVALID_RECORD
        self._errors: list[tuple[int, str]] = []
        self._work = self._steps()

    @property
    def youngest(self) -> int:
        """The largest timestamp, when all is done."""
        return self._times.youngest

    def step(self) -> bool:
        """Go on for a millisecond or two; whether all is done. `InvalidBatch` if the batch must not be stored."""
        return next(self._work, self) is self

    def finish(self) -> int:
        """All of it at once; the largest timestamp."""
        while not self.step():
            pass
        return self.youngest

    def keep(self, view: memoryview) -> None:
        """The same batch, where it may stay from now on."""
        self._packed.view = view[HEADER_BYTES:]

    def _steps(self) -> _Work:
        while self._index < self._count and len(self._errors) < MOST_ERRORS and self._has_piece():
            yield from self._look()
        if self._errors:
            raise InvalidRecords(self._code, self._errors)
        if self._index < self._count:
            raise _invalid(f"{self._count} records are announced, {self._index} are there")
        while self._at == len(self._body):
            if not self._has_piece():
                return
            yield from self._pause()
        raise _invalid(f"bytes follow the last of {self._count} records")

    def _look(self) -> _Work:
        """At what is left of this piece."""
        times, need_keys = self._times, self._need_keys
        while self._at < len(self._body) and self._index < self._count and len(self._errors) < MOST_ERRORS:
            index = self._index
            if self._count - index >= SHORTEST_RUN and times.top >= 0:
                length, size = length_of_run(self._body, self._at, index, self._count, times, need_keys)
                self._cost += _COST_OF_RUN
                if length:
                    self._index += length
                    self._at += length * size
                    self._next_walk = _FIRST_WALK
                    yield from self._pause()
                    continue
            last = min(index + self._next_walk, self._count)
            self._next_walk = min(4 * self._next_walk, _LONGEST_WALK)
            self._index, self._at, headers = walk(self._body, self._at, index, last, times, need_keys)
            self._cost += self._index - index + headers
            if self._index < last:
                yield from self._read_record()
            yield from self._pause()

    def _read_record(self) -> _Work:
        """The next record, number by number."""
        index = self._index
        length = yield from self._number()
        if length & 1:
            raise _invalid(f"record {index} has a length of {signed(length)}")
        end = self._passed + self._at + (length >> 1)
        yield from self._skip(1, end)
        time = yield from self._number(LONG_BYTES)
        offset = yield from self._number()
        key = yield from self._bytes("key", end)
        yield from self._bytes("value", end)
        count = yield from self._number()
        if count & 1 or count >> 1 > MOST_HEADERS:
            raise _invalid(f"record {index} has {signed(count)} headers, {MOST_HEADERS} are allowed")
        left = count >> 1
        while left:
            before = left
            self._at, left = walk_headers(self._body, self._at, left)
            self._cost += before - left
            if left:
                if (yield from self._bytes("header's name", end)) == NULL:
                    raise _invalid(f"record {index} has a header without a name")
                yield from self._bytes("header", end)
                left -= 1
            yield from self._pause()
        if self._passed + self._at != end:
            raise self._does_not_fit("what is in it")
        self._judge(time, offset, key)
        self._index += 1
        self._cost += _COST_OF_STRANGE

    def _judge(self, time: int, offset: int, key: int) -> None:
        """Of a record that could be read."""
        index, times = self._index, self._times
        if offset != index << 1:
            self._errors.append((index, f"offset delta {signed(offset)} where {index} belongs"))
        elif key == NULL and self._need_keys:
            self._errors.append((index, "a compacted topic takes no record without a key"))
        elif not times.is_allowed(time):
            timestamp = times.base + signed(time)
            self._code = ErrorCode.INVALID_TIMESTAMP
            self._errors.append((index, f"timestamp {timestamp} is not within {times.earliest}..{times.latest}"))
        else:
            times.note(time)

    def _bytes(self, what: str, end: int) -> Generator[None, None, int]:
        """Pass over a length and what is so long; the length."""
        length = yield from self._number()
        if not length & 1:
            yield from self._skip(length >> 1, end)
        elif length != NULL:
            raise _invalid(f"record {self._index} has a {what} of {signed(length)} bytes")
        elif self._passed + self._at > end:
            raise self._does_not_fit(f"its {what}")
        return length

    def _number(self, longest: int = INT_BYTES) -> Generator[None, None, int]:
        try:
            number, self._at = number_at(self._body, self._at, longest)
            return number
        except IndexError:
            pass
        # It goes on in the next piece.
        digits = bytes(self._body[self._at :])
        while True:
            yield from self._more()
            try:
                number, behind = number_at(digits + self._body[:LONG_BYTES], 0, longest)
            except IndexError:
                digits += bytes(self._body)
                continue
            self._at = behind - len(digits)
            return number

    def _skip(self, count: int, end: int) -> _Work:
        if self._passed + self._at + count > end:
            raise self._does_not_fit(f"{count} bytes")
        while self._at + count > len(self._body):
            count -= len(self._body) - self._at
            yield from self._more()
        self._at += count

    def _more(self) -> _Work:
        if not self._has_piece():
            raise _invalid(f"record {self._index} ends after its batch does")
        yield from self._pause()

    def _has_piece(self) -> bool:
        """Whether another piece comes. It may be empty."""
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._passed += len(self._body)
        self._body, self._at = piece, 0
        self._cost += 1 + len(piece) // _BYTES_FOR_ONE
        return True

    def _pause(self) -> _Work:
        if self._cost >= STEP_COST:
            self._cost = 0
            yield

    def _does_not_fit(self, what: str) -> InvalidBatch:
        return _invalid(f"{what} of record {self._index} does not fit the record's length")


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
