"""A record batch (format v2, uncompressed) with records that all look alike, built once and sent again and again.

The base offset and the leader epoch stand outside the CRC, so the broker stamps the same bytes each time.
"""

import random
import struct

import crc32c

_HEADER_AFTER_CRC = struct.Struct(">hiqqqhii")
_HEADER_BEFORE_CRC = struct.Struct(">qiibI")


def record_batch(record_bytes: int, records: int, timestamp_ms: int) -> bytes:
    """`records` records with a value of `record_bytes` random bytes, no key, no headers."""
    value = random.Random(record_bytes).randbytes(record_bytes)
    body = b"".join(_record(index, value) for index in range(records))
    after_crc = _HEADER_AFTER_CRC.pack(0, records - 1, timestamp_ms, timestamp_ms, -1, -1, -1, records) + body
    # What follows the length field: leader epoch (4), magic (1), CRC (4), and the rest.
    before_crc = _HEADER_BEFORE_CRC.pack(0, 9 + len(after_crc), -1, 2, crc32c.crc32c(after_crc))
    return before_crc + after_crc


def records_that_fit(record_bytes: int, batch_bytes: int) -> int:
    """How many such records a producer with this `batch.size` puts into one batch."""
    return max(1, (batch_bytes - 61) // len(_record(1000, bytes(record_bytes))))


def _record(index: int, value: bytes) -> bytes:
    inner = b"\0" + _varint(0) + _varint(index) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    return _varint(len(inner)) + inner


def _varint(value: int) -> bytes:
    remaining = (value << 1) ^ (value >> 63)
    out = bytearray()
    while remaining > 0x7F:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)
