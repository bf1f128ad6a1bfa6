"""The header of a record batch (v2): read it, check it at the door, stamp it in place.

A batch is 61 bytes of header and its records, perhaps compressed. The CRC covers everything from the attributes to the
end, so base offset and leader epoch, which stand before it, can be written into a producer's bytes without touching
the rest. `checked` is the door: a `Batch` that came through it may be trusted by everyone inside. It looks at the
header and the CRC; `validation.py` looks at the records.

Error codes are those of Kafka 4.3. We are stricter where no client would notice and the log would suffer: bytes behind
the batch that are not another one, a claim of LogAppendTime or of a delete horizon, timestamps before 1970 other than
-1, a producer id below -1, a producer without an epoch, and a transaction without a producer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from klamm.codec.primitives import Buffer
from klamm.errors import ErrorCode
from klamm.records.compression import Codec
from klamm.records.crc import crc32c
from klamm.records.invalid import InvalidBatch as InvalidBatch

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
# Base offset and length stand before what `length` counts.
OVERHEAD_BYTES = 12
MAGIC = 2

BASE_OFFSET_AT = 0
LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
COUNT_AT = 57

CODEC_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 2**31 - 1
# Length, attributes, timestamp delta, offset delta, key length, value length, header count: a byte each.
SMALLEST_RECORD_BYTES = 7

_LENGTH = Struct(">i")
# What a record of the oldest format needs; Kafka looks no closer before it knows the format.
_SMALLEST_LEGACY_LENGTH = 14

_unpack_header = HEADER.unpack_from
_pack_offset = _pack_timestamp = Struct(">q").pack_into
_pack_epoch = Struct(">i").pack_into
_pack_crc = Struct(">I").pack_into
_pack_attributes = Struct(">h").pack_into
_CODECS = tuple(Codec)
_NOT_FOR_PRODUCERS = LOG_APPEND_TIME_BIT | CONTROL_BIT | DELETE_HORIZON_BIT


@dataclass(slots=True, repr=False)
class Batch:
    """A header as a value. It is a snapshot: stamping the bytes afterwards does not change it."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size_bytes(self) -> int:
        return self.length + OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequences wrap from 2**31 - 1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset_delta & MAX_SEQUENCE

    @property
    def codec(self) -> Codec:
        return Codec(self.attributes & CODEC_BITS)

    @property
    def log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop this batch's tombstones; it then stands in place of the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def __repr__(self) -> str:
        codec = self.attributes & CODEC_BITS
        words = [
            f"batch {self.base_offset}..{self.last_offset} epoch={self.leader_epoch} {self.size_bytes} bytes",
            _CODECS[codec].name.lower() if codec < len(_CODECS) else f"codec={codec}",
        ]
        if self.has_producer:
            words.append(f"producer={self.producer_id}/{self.producer_epoch} sequence={self.base_sequence}")
        words += [word for word in ("transactional", "control") if getattr(self, f"is_{word}")]
        return f"<{' '.join(words)}>"


def checked(view: memoryview) -> Batch:
    """The door for a producer's bytes: exactly one sound batch, or `InvalidBatch` with the code Kafka gives."""
    size = len(view)
    if size < HEADER_BYTES:
        raise _too_short(view)
    fields = _unpack_header(view)
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = fields
    if length + OVERHEAD_BYTES != size or magic != MAGIC:
        raise _wrong_shape(size, length, magic)
    if base_offset != 0:
        raise _invalid(f"base offset is {base_offset}, a producer's is 0")
    if crc32c(view[ATTRIBUTES_AT:]) != crc:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, "the CRC does not match the bytes")
    if count < 1 or last_offset_delta != count - 1:
        raise _invalid(f"{count} records do not fit a last offset delta of {last_offset_delta}")
    if attributes & _NOT_FOR_PRODUCERS:
        raise _not_for_producers(attributes)
    if attributes & CODEC_BITS:
        if attributes & CODEC_BITS > Codec.ZSTD:
            raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec {attributes & CODEC_BITS} is known")
    elif count * SMALLEST_RECORD_BYTES > size - HEADER_BYTES:
        raise _invalid(f"{count} records do not fit into {size - HEADER_BYTES} bytes")
    if base_timestamp < NO_TIMESTAMP or max_timestamp < NO_TIMESTAMP:
        raise InvalidBatch(ErrorCode.INVALID_TIMESTAMP, f"timestamps {base_timestamp} and {max_timestamp}")
    if producer_id >= 0:
        if base_sequence < 0:
            raise _invalid(f"sequence {base_sequence} of producer {producer_id}")
        if producer_epoch < 0:
            raise InvalidBatch(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {producer_epoch} of producer {producer_id}")
    elif producer_id < -1 or attributes & TRANSACTIONAL_BIT:
        raise _invalid(f"a batch of producer {producer_id} with attributes {attributes:#x}")
    return Batch(*fields)


def read_header(buffer: Buffer, position: int = 0) -> Batch:
    """The header as it stands, unchecked: for bytes that came through the door before."""
    return Batch(*_unpack_header(buffer, position))


def intact(view: memoryview) -> Batch:
    """The door for stored or replicated bytes: `view` is one whole v2 batch with the right CRC, or it is corrupt."""
    if len(view) < HEADER_BYTES:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"{len(view)} bytes are not a batch")
    batch = Batch(*_unpack_header(view))
    if batch.magic != MAGIC or batch.length + OVERHEAD_BYTES != len(view):
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"{len(view)} bytes are not the one {batch}")
    if crc32c(view[ATTRIBUTES_AT:]) != batch.crc:
        raise InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"the CRC of {batch} does not match its bytes")
    return batch


def stamp(view: memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in the log. Both fields stand outside the CRC."""
    _pack_offset(view, BASE_OFFSET_AT, base_offset)
    _pack_epoch(view, LEADER_EPOCH_AT, leader_epoch)


def set_append_time(view: memoryview, now_ms: int) -> None:
    """Make it a batch of LogAppendTime: every record's timestamp is now the batch's largest."""
    attributes = _unpack_header(view)[5]
    _pack_attributes(view, ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    set_max_timestamp(view, now_ms)


def set_max_timestamp(view: memoryview, max_timestamp: int) -> None:
    """Correct a header whose largest timestamp is not that of its records (some clients write the last one's)."""
    _pack_timestamp(view, MAX_TIMESTAMP_AT, max_timestamp)
    set_crc(view)


def set_crc(view: memoryview) -> None:
    _pack_crc(view, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))


def batches(buffer: Buffer) -> Iterator[tuple[int, Batch]]:
    """Position and header of every whole v2 batch in a slice of a log; stops where there is none, as at a torn tail."""
    view = memoryview(buffer)
    position, end = 0, len(view)
    while position + HEADER_BYTES <= end:
        batch = Batch(*_unpack_header(view, position))
        size = batch.size_bytes
        if size < HEADER_BYTES or position + size > end or batch.magic != MAGIC:
            return
        yield position, batch
        position += size


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)


def _too_short(view: memoryview) -> InvalidBatch:
    """Less than a header: an older format, a cut-off batch, or nothing at all."""
    if len(view) <= MAGIC_AT:
        return _invalid(f"{len(view)} bytes are not a batch")
    (length,) = _LENGTH.unpack_from(view, LENGTH_AT)
    magic = view[MAGIC_AT]
    return _wrong_shape(len(view), length, magic if magic < 128 else magic - 256)


def _wrong_shape(size: int, length: int, magic: int) -> InvalidBatch:
    """Kafka calls impossible sizes and formats corrupt, and refuses possible ones that a producer may not send."""
    if length < _SMALLEST_LEGACY_LENGTH or not 0 <= magic <= MAGIC:
        return InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"a batch of length {length} and format {magic}")
    if length + OVERHEAD_BYTES > size:
        return _invalid(f"the batch is {length + OVERHEAD_BYTES} bytes long but {size} were sent")
    if magic != MAGIC:
        return _invalid(f"message format {magic} is not accepted, only {MAGIC}")
    if length + OVERHEAD_BYTES < HEADER_BYTES:
        return InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"length {length} leaves no room for a header")
    return _invalid(f"exactly one batch is accepted, {size - length - OVERHEAD_BYTES} bytes follow the first")


def _not_for_producers(attributes: int) -> InvalidBatch:
    if attributes & LOG_APPEND_TIME_BIT:
        return InvalidBatch(ErrorCode.INVALID_TIMESTAMP, "only the broker may set the timestamp type to LogAppendTime")
    return _invalid(f"clients may not write control batches or delete horizons (attributes {attributes:#x})")
