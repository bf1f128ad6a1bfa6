"""Batches to send: right ones, and ones that can be wrong in their records while their header is right."""

import time

from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import encode_record
from tests.records.made import with_body

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
NOW_MS = time.time_ns() // 1_000_000


def batch_of(*values: bytes, codec: int = 0, timestamp: int = -1) -> bytearray:
    """A right batch of these values. Without a time, so that no topic minds it."""
    builder = BatchBuilder(codec)
    for value in values:
        builder.append(b"key", value, timestamp)
    return builder.build()


def one_record(**changes: object) -> bytes:
    record = bytearray()
    encode_record(record, **{"offset_delta": 0, "timestamp_delta": 0, "key": b"k", "value": b"v", **changes})  # type: ignore[arg-type]
    return bytes(record)


def timeless(body: bytes, codec: int = Codec.NONE, **changes: int) -> bytearray:
    return with_body(body, codec, **{"base_timestamp": -1, "max_timestamp": -1, **changes})
