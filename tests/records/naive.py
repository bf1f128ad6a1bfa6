"""Reads a batch's records as a beginner would, with other people's decompressors. `validated` has to agree with it."""

import gzip
import io
import zlib

import cramjam
import lz4.frame
import zstandard

from klamm.records.batch import HEADER_BYTES, Batch
from klamm.records.compression import Codec

MOST_HEADERS = 65_536


class Unreadable(Exception):  # noqa: N818
    pass


def youngest(view: bytes, batch: Batch) -> int:
    """The largest timestamp, or why the batch cannot be read."""
    stream = io.BytesIO(unpacked(batch.codec, bytes(view[HEADER_BYTES:])))
    times = [one_record(stream, index, batch) for index in range(batch.count)]
    if stream.read(1):
        raise Unreadable("something follows the last record")
    return max(times)


def unpacked(codec: Codec, data: bytes) -> bytes:
    try:
        if codec is Codec.GZIP:
            stream = zlib.decompressobj(wbits=31)
            out = stream.decompress(data)
            if not stream.eof or stream.unused_data:
                raise Unreadable("not one gzip member")
            assert out == gzip.decompress(data)
            return out
        if codec is Codec.SNAPPY:
            return unsnapped(data)
        if codec is Codec.LZ4:
            if not data[4] & 0x20 or data[4] & 0x01:
                raise Unreadable("dependent blocks, or a dictionary")
            frame = lz4.frame.LZ4FrameDecompressor()
            out = frame.decompress(data)
            if not frame.eof or frame.unused_data:
                raise Unreadable("not one frame")
            return bytes(out)
        if codec is Codec.ZSTD:
            if data[:4] != b"\x28\xb5\x2f\xfd":
                raise Unreadable("not a frame")
            decoder = zstandard.ZstdDecompressor().decompressobj()
            out = decoder.decompress(data)
            if not decoder.eof or decoder.unused_data:
                raise Unreadable("not one frame")
            return out
    except (zlib.error, RuntimeError, zstandard.ZstdError, cramjam.DecompressionError, IndexError) as error:
        raise Unreadable(str(error)) from error
    return data


def unsnapped(data: bytes) -> bytes:
    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(cramjam.snappy.decompress_raw(data))
    if len(data) < 16:
        raise Unreadable("a short header")
    out, rest = b"", data[16:]
    while rest:
        size = int.from_bytes(rest[:4], "big", signed=True)
        if len(rest) < 4 or not 0 < size <= len(rest) - 4:
            raise Unreadable("a chunk that is not there")
        out += bytes(cramjam.snappy.decompress_raw(rest[4 : 4 + size]))
        rest = rest[4 + size :]
    return out


def one_record(stream: io.BytesIO, index: int, batch: Batch) -> int:
    length = number(stream)
    body = taken(stream, length)
    record = io.BytesIO(body)
    taken(record, 1)
    timestamp = batch.base_timestamp + number(record, 64)
    if number(record) != index:
        raise Unreadable("a wrong offset")
    content(record, may_be_null=True)
    content(record, may_be_null=True)
    headers = number(record)
    if not 0 <= headers <= MOST_HEADERS:
        raise Unreadable("a wrong number of headers")
    for _ in range(headers):
        content(record, may_be_null=False)
        content(record, may_be_null=True)
    if record.read(1):
        raise Unreadable("something follows the last header")
    if not -1 <= timestamp < 2**63:
        raise Unreadable("a wrong time")
    return timestamp


def content(stream: io.BytesIO, *, may_be_null: bool) -> None:
    length = number(stream)
    if length == -1 and may_be_null:
        return
    taken(stream, length)


def taken(stream: io.BytesIO, length: int) -> bytes:
    if length < 0:
        raise Unreadable("a negative length")
    out = stream.read(length)
    if len(out) < length:
        raise Unreadable("it ends too early")
    return out


def number(stream: io.BytesIO, bits: int = 32) -> int:
    value = 0
    for index in range(-(-bits // 7)):
        (byte,) = taken(stream, 1)
        value |= (byte & 127) << 7 * index
        if byte < 128:
            if value >> bits:
                break
            return value >> 1 if value % 2 == 0 else -(value >> 1) - 1
    raise Unreadable("a number that is too long")
