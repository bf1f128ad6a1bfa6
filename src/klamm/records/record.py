"""Single records: how they stand in a batch, and how they are taken out and put in.

A record is its length, an unused attributes byte, and then zigzag varints: timestamp and offset as differences from
the batch's, key, value and headers each behind their length, of which a negative one means null. Header names are text;
bytes in them that are not UTF-8 come back as the same bytes (surrogateescape), because a broker has no opinion on them.

Every length is checked against the bytes that remain, every count against what would fit, so a batch that lies costs
no more than an honest one of its size.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from klamm.codec.primitives import Buffer
from klamm.errors import ErrorCode
from klamm.records.batch import HEADER_BYTES, Batch, InvalidBatch, read_header
from klamm.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, decompressed

Header: TypeAlias = tuple[str, bytes | None]

_INT_BYTES = 5
_LONG_BYTES = 10
_MIN_TIMESTAMP, _MAX_TIMESTAMP = -(2**63), 2**63 - 1
# A name of no bytes and a null value.
_SMALLEST_HEADER_BYTES = 2

MOST_HEADERS = 65_536
"""In one record: each takes two bytes to send and a hundred to hold."""

MOST_ERRORS = 100
"""So many bad records are named; one is enough to refuse the batch."""


@dataclass(slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class InvalidRecords(InvalidBatch):
    """A batch refused for some of its records: `errors` are their indices in the batch, each with its reason."""

    def __init__(self, code: ErrorCode, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, f"{len(errors)} records refused, the first at {errors[0][0]}: {errors[0][1]}")
        self.errors = errors


def records_of(view: Buffer, limit: int = DECOMPRESSED_LIMIT_BYTES) -> Iterator[Record]:
    """The records of one whole batch, decompressed to at most `limit` bytes. `InvalidBatch` where they are damaged."""
    view = memoryview(view)
    batch = read_header(view)
    # One copy, so that every key and value is a plain slice and none keeps the caller's buffer alive.
    body = bytes(decompressed(_known_codec(batch), view[HEADER_BYTES:], limit))
    return _decoded(batch, body)


def encode_record(
    out: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: Buffer | None,
    value: Buffer | None,
    headers: Iterable[Header] = (),
) -> None:
    """Append one record to a batch's body."""
    body = bytearray(1)
    _append_number(body, timestamp_delta)
    _append_number(body, offset_delta)
    _append_bytes(body, key)
    _append_bytes(body, value)
    headers = tuple(headers)
    _append_number(body, len(headers))
    for name, content in headers:
        _append_bytes(body, name.encode("utf-8", "surrogateescape"))
        _append_bytes(body, content)
    _append_number(out, len(body))
    out += body


def _decoded(batch: Batch, body: bytes) -> Iterator[Record]:
    """The loop over records, with the first byte of every number read in place, because calls are what costs here.

    An index past the end is an IndexError; a slice past it shows as a record of the wrong length.
    """
    size = len(body)
    base_offset, last_offset_delta = batch.base_offset, batch.last_offset_delta
    base_timestamp, append_time = batch.base_timestamp, batch.max_timestamp if batch.log_append_time else None
    position, previous_delta = 0, -1
    try:
        for _ in range(batch.count):
            length = body[position]
            position += 1
            if length > 127:
                length, position = _rest_of_number(body, position, length)
            start, end = position, position + (length >> 1)
            if length & 1 or end > size:
                raise _invalid(f"a record of {_signed(length)} bytes where {size - position} remain")

            delta = body[position + 1]
            position += 2
            if delta > 127:
                delta, position = _rest_of_number(body, position, delta, _LONG_BYTES)
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1)) if append_time is None else append_time
            if not _MIN_TIMESTAMP <= timestamp <= _MAX_TIMESTAMP:
                raise InvalidBatch(ErrorCode.INVALID_TIMESTAMP, f"timestamp {timestamp} does not fit 64 bits")

            delta = body[position]
            position += 1
            if delta > 127:
                delta, position = _rest_of_number(body, position, delta)
            delta = (delta >> 1) ^ -(delta & 1)
            if not previous_delta < delta <= last_offset_delta:
                raise _invalid(f"offset delta {delta} after {previous_delta} of {last_offset_delta}")
            previous_delta = delta

            length = body[position]
            position += 1
            if length > 127:
                length, position = _rest_of_number(body, position, length)
            key = None
            if not length & 1:
                key = body[position : (position := position + (length >> 1))]

            length = body[position]
            position += 1
            if length > 127:
                length, position = _rest_of_number(body, position, length)
            value = None
            if not length & 1:
                value = body[position : (position := position + (length >> 1))]

            headers: tuple[Header, ...] = ()
            if body[position]:
                headers, position = _headers_at(body, position, end)
            else:
                position += 1
            if position != end:
                raise _invalid(f"a record of {end - start} bytes holds {position - start}")
            yield Record(base_offset + delta, timestamp, key, value, headers)
        if position != size:
            raise _invalid(f"{size - position} bytes follow the last of {batch.count} records")
    except IndexError as error:
        raise _invalid("a record ends after its batch does") from error


def _headers_at(body: bytes, position: int, end: int) -> tuple[tuple[Header, ...], int]:
    number, position = _number_at(body, position)
    count = _signed(number)
    if not 0 <= count <= min(MOST_HEADERS, (end - position) // _SMALLEST_HEADER_BYTES):
        raise _invalid(f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        name, position = _bytes_at(body, position)
        if name is None:
            raise _invalid("a header without a name")
        content, position = _bytes_at(body, position)
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return tuple(headers), position


def _bytes_at(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _number_at(body, position)
    if length & 1:
        return None, position
    end = position + (length >> 1)
    return body[position:end], end


def _number_at(body: bytes, position: int) -> tuple[int, int]:
    """A varint, its sign still in the lowest bit."""
    byte = body[position]
    if byte < 128:
        return byte, position + 1
    return _rest_of_number(body, position + 1, byte)


def _rest_of_number(body: bytes, position: int, first: int, longest: int = _INT_BYTES) -> tuple[int, int]:
    byte = body[position]
    number = first & 127 | (byte & 127) << 7
    shift = 14
    while byte > 127:
        position += 1
        if shift == 7 * longest:
            raise _invalid(f"a number of more than {longest} bytes")
        byte = body[position]
        number |= (byte & 127) << shift
        shift += 7
    return number, position + 1


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)


def _append_bytes(out: bytearray, content: Buffer | None) -> None:
    if content is None:
        out.append(1)
        return
    _append_number(out, len(content))
    out += content


def _append_number(out: bytearray, number: int) -> None:
    zigzag = number << 1 if number >= 0 else (-number << 1) - 1
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _known_codec(batch: Batch) -> Codec:
    try:
        return batch.codec
    except ValueError as error:
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error)) from error


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
