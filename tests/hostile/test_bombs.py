"""Batches that become much more than they are: bytes when decompressed, objects when read.

The ceiling is the broker's whole memory, measured by the kernel, while a topic takes the parcel apart: one with a
`compression.type` of its own to pack it anew, a compacted one to see every record's key.
"""

import gzip

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest

from klamm.errors import ErrorCode
from klamm.records.compression import Codec, compressed
from tests.hostile.batches import CODECS, NOW_MS, timeless
from tests.hostile.target import MEBIBYTE, NAMED, Target, produce
from tests.records.made import with_body


def zeros(codec: Codec, size: int) -> bytes:
    """A bomb of zeros: a record of them, headers without end, or nothing that is a record at all."""
    if codec == Codec.GZIP:
        return gzip.compress(bytes(size), 9, mtime=0)
    if codec == Codec.LZ4:
        return bytes(lz4.frame.compress(bytes(size), block_size=7, block_linked=False))
    if codec == Codec.SNAPPY:
        return bytes(cramjam.snappy.compress_raw(bytes(size)))
    return bytes(cramjam.zstd.compress(bytes(size)))


def many_times(codec: Codec, size: int) -> bytes:
    """The same, as one stream after another."""
    part = 16 * MEBIBYTE
    return zeros(codec, part) * (size // part)


PARCELS = [
    *[(codec, size_mib) for codec in (Codec.GZIP, Codec.ZSTD) for size_mib in (1024, 200, 60, 15)],
    *[(Codec.LZ4, size_mib) for size_mib in (200, 60, 15)],
    (Codec.SNAPPY, 15),
]
"""What each codec can get into a mebibyte, which is what a topic takes."""


@pytest.mark.parametrize("codec, size_mib", PARCELS, ids=str)
def test_a_bomb_of_zeros_is_refused_before_it_goes_off(
    fresh_target: Target, topic: str, codec: Codec, size_mib: int
) -> None:
    """CVE-2026-111073, CVE-2023-34455: only the compressed size was looked at."""
    parcel = (zeros if size_mib < 1024 else many_times)(codec, size_mib * MEBIBYTE)
    assert len(parcel) < MEBIBYTE
    fresh_target.create_topic(topic, compression_type="uncompressed")
    fresh_target.reset_peak()
    with fresh_target.connect() as client:
        response = client.ask(produce(topic, timeless(parcel, codec)), NAMED)
    assert response.responses[0].partition_responses[0].error_code in (
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
    )
    fresh_target.check_memory()


def headers_without_end(size: int) -> bytes:
    """One record whose headers are empty: two zero bytes each, which become objects."""
    count = size // 2
    inside = bytes([0, 0, 0]) + b"\x02k\x01" + _zigzag(count) + bytes(2 * count)
    return _zigzag(len(inside)) + inside


def records_without_end(size: int) -> tuple[bytes, int]:
    """As many as fit: without value or headers."""
    body = bytearray()
    count = 0
    while len(body) < size:
        inside = b"\0\0" + _zigzag(count) + b"\x02k\x01\0"
        body += _zigzag(len(inside)) + inside
        count += 1
    return bytes(body), count


@pytest.mark.parametrize("setting", [{"compression_type": "uncompressed"}, {"cleanup_policy": "compact"}], ids=str)
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_bomb_of_empty_headers_is_bounded(
    fresh_target: Target, topic: str, codec: Codec, setting: dict[str, str]
) -> None:
    """Every two bytes of zeros could become an object of a hundred."""
    fresh_target.create_topic(topic, 1, **setting)
    parcel = compressed(codec, headers_without_end(15 * MEBIBYTE))
    assert len(parcel) < MEBIBYTE
    fresh_target.reset_peak()
    with fresh_target.connect(patience=30) as client:
        client.ask(produce(topic, timeless(parcel, codec)), NAMED)
    fresh_target.check_memory()


def test_a_bomb_goes_off_on_no_plain_topic_either(fresh_target: Target, topic: str) -> None:
    fresh_target.create_topic(topic)
    fresh_target.reset_peak()
    future = NOW_MS + 100 * 24 * 3_600_000
    parcel = compressed(Codec.GZIP, headers_without_end(60 * MEBIBYTE))
    lie = with_body(parcel, Codec.GZIP, base_timestamp=future, max_timestamp=future)
    with fresh_target.connect(patience=30) as client:
        client.ask(produce(topic, lie), NAMED)
    fresh_target.check_memory()


@pytest.mark.parametrize("setting", [{"compression_type": "uncompressed"}, {"cleanup_policy": "compact"}], ids=str)
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY], ids=lambda codec: codec.name)
def test_a_bomb_of_empty_records_is_bounded(
    fresh_target: Target, topic: str, codec: Codec, setting: dict[str, str]
) -> None:
    fresh_target.create_topic(topic, 1, **setting)
    body, count = records_without_end(8 * MEBIBYTE)
    parcel = compressed(codec, body)
    while len(parcel) > MEBIBYTE:
        body, count = records_without_end(len(body) // 2)
        parcel = compressed(codec, body)
    fresh_target.reset_peak()
    with fresh_target.connect(patience=30) as client:
        client.ask(produce(topic, timeless(parcel, codec, count=count)), NAMED)
    fresh_target.check_memory()


def _zigzag(number: int) -> bytes:
    out = bytearray()
    value = number << 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
