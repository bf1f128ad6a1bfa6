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
from klamm.records.builder import BatchBuilder
from klamm.records.columns import SHORTEST_RUN, length_of_run
from klamm.records.compression import Packed
from klamm.records.decompression import MOST_BYTES, Piece, pieces
from klamm.records.heads import LONGEST_TABLE, pass_table
from klamm.records.invalid import InvalidBatch
from klamm.records.record import MOST_ERRORS, InvalidRecords
from klamm.records.walking import (
    INT_BYTES,
    LATEST_MS,
    LONG_BYTES,
    MOST_HEADERS,
    NULL,
    Times,
    is_all_and_sound,
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
_WINDOW_BYTES = 128 << 10
"""Are copied at once: slices of a `memoryview` are slow, and more would not stay in the cache."""
_FEW_BYTES = 4 << 10
"""Are looked at together with those behind them."""
_COST_OF_RUN = 8
_COST_OF_STRANGE = 32
_BYTES_FOR_ONE = 64
"""Decompressing so many costs as much as a record."""


class Built:
    """In place of a `Validation`: our own builder made these records, so there is nothing to look at."""

    __slots__ = ("youngest",)

    def __init__(self, batch: BatchBuilder) -> None:
        self.youngest = batch.max_timestamp


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
    if not batch.attributes & CODEC_BITS:
        youngest = batch.max_timestamp
        if (
            batch.count == 1
            and earliest_ms <= youngest == batch.base_timestamp <= latest_ms
            and youngest >= 0
            and is_all_and_sound(view, HEADER_BYTES, need_keys)
        ):
            return youngest
        times = Times(batch.base_timestamp, earliest_ms, latest_ms)
        if _is_sound(view, batch.count, times, need_keys):
            return times.youngest
    validation = Validation(
        view, batch, need_keys=need_keys, earliest_ms=earliest_ms, latest_ms=latest_ms, most_bytes=most_bytes
    )
    for _ in range(STEPS_AT_ONCE):
        if validation.step():
            return validation.youngest
    return validation


def _is_sound(view: memoryview, count: int, times: Times, need_keys: bool) -> bool:
    """The short way, for most batches: whether these are all the records there should be, none of them strange, and it
    did not take long to see. If not, that says nothing."""
    # From one byte before the records on: `pass_table` looks back.
    begin, at = HEADER_BYTES - 1, 1
    index = cost = 0
    body = bytes(view[begin : begin + _WINDOW_BYTES])
    if count < SHORTEST_RUN:
        index, at, _ = walk(body, at, 0, count, times, need_keys)
    walk_length = _FIRST_WALK
    while index < count and cost < STEPS_AT_ONCE * STEP_COST:
        index, at, cost_of_these, walk_length = _pass(body, at, index, count, times, need_keys, walk_length)
        cost += cost_of_these
        if len(body) == _WINDOW_BYTES and (not walk_length or at > _WINDOW_BYTES - _FEW_BYTES) and at > 1:
            begin += at - 1
            at = 1
            body = bytes(view[begin : begin + _WINDOW_BYTES])
            walk_length = _FIRST_WALK
        elif not walk_length:
            return False
    return index == count and begin + at == len(view)


def _pass(
    body: Piece, at: int, index: int, count: int, times: Times, need_keys: bool, walk_length: int
) -> tuple[int, int, int, int]:
    """Some records, by the fastest way they can be passed: the index and position behind them, what that cost, and how
    many to walk over should no other way be found then. 0 if the next record is strange, or not all here."""
    cost = 0
    if count - index >= SHORTEST_RUN and times.top >= 0:
        length, size = length_of_run(body, at, index, count, times, need_keys)
        if length:
            return index + length, at + length * size, _COST_OF_RUN, _FIRST_WALK
        passed, behind = pass_table(body, at, index, count, times, need_keys)
        if passed > index:
            return passed, behind, _COST_OF_RUN + (passed - index) // 4, _FIRST_WALK
        # As if the whole table had been filled in vain.
        cost = _COST_OF_RUN + min(count - index, LONGEST_TABLE) // 4
    last = min(index + walk_length, count)
    behind, at, headers = walk(body, at, index, last, times, need_keys)
    return behind, at, cost + behind - index + headers, min(4 * walk_length, _LONGEST_WALK) if behind == last else 0


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
        "_packed",
        "_passed",
        "_pieces",
        "_times",
        "_walk_length",
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
        self._walk_length = _FIRST_WALK
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
        while self._index < self._count and len(self._errors) < MOST_ERRORS and self._has_longer_piece():
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
            if len(self._body) - self._at < _FEW_BYTES and self._has_longer_piece():
                yield from self._pause()
                continue
            walk_length, last = self._walk_length, min(self._index + self._walk_length, self._count)
            self._index, self._at, cost, self._walk_length = _pass(
                self._body, self._at, self._index, self._count, times, need_keys, walk_length
            )
            self._cost += cost
            if not self._walk_length:
                self._walk_length = min(4 * walk_length, _LONGEST_WALK)
                yield from self._read_record()
                yield from self._walk_until(last)
            yield from self._pause()

    def _walk_until(self, last: int) -> _Work:
        """Strange records seldom come alone, so no other way is tried before the walk ends that met one."""
        while self._index < last and self._at < len(self._body) and len(self._errors) < MOST_ERRORS:
            index = self._index
            self._index, self._at, headers = walk(self._body, self._at, index, last, self._times, self._need_keys)
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

    def _has_longer_piece(self) -> bool:
        """Whether another piece comes, and is put behind what is left of this one."""
        left, at, passed = self._body, self._at, self._passed
        if not self._has_piece():
            return False
        # With one byte before: `pass_table` looks back.
        self._body = (left[at - 1 :] if at else b"\0" + left) + self._body
        self._at = 1
        self._passed = passed + at - 1
        return True

    def _pause(self) -> _Work:
        if self._cost >= STEP_COST:
            self._cost = 0
            yield

    def _does_not_fit(self, what: str) -> InvalidBatch:
        return _invalid(f"{what} of record {self._index} does not fit the record's length")


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
