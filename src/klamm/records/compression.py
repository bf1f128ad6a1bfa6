"""Compression of a batch's records, with a cap on what comes out.

A kilobyte may claim to be a gigabyte. So nothing is decompressed before its size has been bounded from what the stream
itself says (its declared size, or its blocks times the largest block) and from the best ratio the codec can reach. The
output buffer is made once, no larger than that bound and the caller's limit, and a stream that wants to write past it
is refused. What decoders allocate beside it (a window, a block) stays below 10 MiB.

What we write, Kafka's Java clients read: snappy in the chunks of snappy-java (`xerial`), lz4 in frames of independent
blocks. What we read is anything clients send: snappy is also accepted raw, as librdkafka writes it. A second gzip
member or zstd frame behind the first, which no client writes, is read only if it fits into the bound of one.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from struct import error as struct_error

import cramjam

from klamm.codec.primitives import Buffer
from klamm.errors import ErrorCode
from klamm.records.invalid import InvalidBatch

DECOMPRESSED_LIMIT_BYTES = 64 * 2**20


class Codec(IntEnum):
    """The codec's number as the lowest three bits of a batch's attributes carry it."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class Packed:
    """A batch's records as they were sent. Who needs them longer than a step copies them while they are there."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view

    def __len__(self) -> int:
        return len(self.view)


def by_name(name: str) -> Codec:
    """The codec that `compression.type` calls so; ValueError for `producer`, `uncompressed` and what does not exist."""
    for codec in Codec:
        if codec.name.lower() == name:
            return codec
    raise ValueError(f"no codec is called {name!r}")


def compressed(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`level` is the codec's own (`compression.gzip.level` and so on); None is its default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        return bytes(memoryview(cramjam.gzip.compress(data, level=_GZIP_DEFAULT_LEVEL if level is None else level)))
    if codec == Codec.SNAPPY:
        return _xerial(memoryview(data))
    if codec == Codec.ZSTD:
        return bytes(memoryview(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT_LEVEL if level is None else level)))
    frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    frame.compress(bytes(data))
    return bytes(memoryview(frame.finish()))


def decompressed(codec: Codec, data: Buffer, limit: int = DECOMPRESSED_LIMIT_BYTES) -> memoryview:
    """What `data` was before it was compressed: at most `limit` bytes, or `InvalidBatch`."""
    view = memoryview(data)
    try:
        if codec == Codec.NONE:
            return view
        if codec == Codec.SNAPPY:
            return _unsnapped(view, limit)
        if codec == Codec.GZIP:
            bound, decompress_into = _gzip_bound(view), cramjam.gzip.decompress_into
        elif codec == Codec.LZ4:
            bound, decompress_into = _lz4_bound(view, limit), cramjam.lz4.decompress_into
        else:
            bound, decompress_into = _zstd_bound(view, limit), cramjam.zstd.decompress_into
        output = memoryview(bytearray(min(bound, limit)))
        return output[: decompress_into(view, output)]
    except (cramjam.DecompressionError, ValueError, IndexError, struct_error) as error:
        raise refused(codec, str(error)) from error


# gzip

_GZIP_DEFAULT_LEVEL = 6
# No deflate stream is better than this.
_GZIP_BEST_RATIO = 1032
_GZIP_SMALLEST_BYTES = 18


def _gzip_bound(data: memoryview) -> int:
    """The last four bytes are the size modulo 2**32."""
    if len(data) < _GZIP_SMALLEST_BYTES:
        raise ValueError("too short for a gzip member")
    return min(int.from_bytes(data[-4:], "little"), len(data) * _GZIP_BEST_RATIO)


# snappy

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# The magic, and twice the version 1: its own, and the oldest that can read it.
_XERIAL_HEADER = _XERIAL_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))
_XERIAL_CHUNK_BYTES = 32 * 2**10
_CHUNK_LENGTH = Struct(">i")
# The best element copies 64 bytes and takes three.
SNAPPY_BEST_RATIO = 22


def _xerial(data: memoryview) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_CHUNK_BYTES):
        chunk = memoryview(cramjam.snappy.compress_raw(data[start : start + _XERIAL_CHUNK_BYTES]))
        out += _CHUNK_LENGTH.pack(len(chunk))
        out += chunk
    return bytes(out)


def _unsnapped(data: memoryview, limit: int) -> memoryview:
    chunks = [data[start:end] for start, end in snappy_chunks(Packed(data))]
    sizes = [cramjam.snappy.decompress_raw_len(chunk) for chunk in chunks]
    total = sum(sizes)
    if total > min(limit, len(data) * SNAPPY_BEST_RATIO):
        raise ValueError(f"{len(data)} bytes of snappy claim to be {total}")
    output = memoryview(bytearray(total))
    position = 0
    for chunk, size in zip(chunks, sizes, strict=True):
        cramjam.snappy.decompress_raw_into(chunk, output[position : position + size])
        position += size
    return output


def snappy_chunks(packed: Packed) -> Iterator[tuple[int, int]]:
    """Where each chunk begins and ends. The raw format is one chunk, without a header."""
    if packed.view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield 0, len(packed)
        return
    position = len(_XERIAL_HEADER)
    if len(packed) < position:
        raise ValueError("a snappy stream without its versions")
    while position < len(packed):
        if position + _CHUNK_LENGTH.size > len(packed):
            raise ValueError("a snappy stream that ends too early")
        (length,) = _CHUNK_LENGTH.unpack_from(packed.view, position)
        position += _CHUNK_LENGTH.size
        if not 0 < length <= len(packed) - position:
            raise ValueError(f"a snappy chunk of {length} bytes where {len(packed) - position} remain")
        yield position, position + length
        position += length


# lz4

LZ4_MAGIC = 0x184D2204
_LZ4_START = Struct("<IBB")
LZ4_BLOCK_SIZE = Struct("<I")
LZ4_BEST_RATIO = 255


def _lz4_bound(data: memoryview, limit: int) -> int:
    """Every block of the frame may be as large as the frame's header allows."""
    magic, flags, block_descriptor = _LZ4_START.unpack_from(data)
    if magic != LZ4_MAGIC:
        raise ValueError("not an lz4 frame")
    largest = min(1 << 8 + 2 * (block_descriptor >> 4 & 7), len(data) * LZ4_BEST_RATIO)
    block_checksum = 4 if flags & 0x10 else 0
    position = _LZ4_START.size + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0) + 1
    bound = 0
    while bound < limit:
        (size,) = LZ4_BLOCK_SIZE.unpack_from(data, position)
        if size == 0:
            break
        bound += largest
        position += 4 + (size & 0x7FFFFFFF) + block_checksum
    return bound


# zstd

_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_START = Struct("<IB")
_ZSTD_SMALL_WINDOW_BYTES = 8 * 2**20
ZSTD_LARGEST_BLOCK_BYTES = 128 * 2**10
ZSTD_RUN_LENGTH_BLOCK = 1
_ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_CHECKSUM = 0x04


def _zstd_bound(data: memoryview, limit: int) -> int:
    """The content size, if the frame declares it, but no more than its blocks can hold."""
    position, window_bytes, content_bytes, _ = zstd_start(data)
    if window_bytes > _ZSTD_SMALL_WINDOW_BYTES:
        # The decoder keeps a window's worth of output for itself, so there is half as much left for us.
        limit //= 2
    if content_bytes is not None and content_bytes > limit:
        raise ValueError(f"a zstd frame of {content_bytes} bytes, {limit} are allowed")
    bound = min(_zstd_blocks_bound(data, position, limit), limit)
    return bound if content_bytes is None else min(bound, content_bytes)


def zstd_start(data: memoryview) -> tuple[int, int, int | None, bool]:
    """Of a frame: where its blocks begin, its window, the size of its content if it says so, whether a checksum of four
    bytes ends it."""
    if len(data) < _ZSTD_START.size + 1:
        raise ValueError("too short for a zstd frame")
    magic, descriptor = _ZSTD_START.unpack_from(data)
    if magic != _ZSTD_MAGIC:
        raise ValueError("not a zstd frame")
    single_segment = descriptor >> 5 & 1
    position = _ZSTD_START.size + (not single_segment) + _ZSTD_DICTIONARY_ID_BYTES[descriptor & 3]
    content_size_bytes = _ZSTD_CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    content_bytes = int.from_bytes(data[position : position + content_size_bytes], "little")
    if content_size_bytes == 2:
        # One byte counts to 255, two count from 256.
        content_bytes += 256
    window_bytes = content_bytes if single_segment else 1 << 10 + (data[_ZSTD_START.size] >> 3)
    has_checksum = bool(descriptor & _ZSTD_CHECKSUM)
    return position + content_size_bytes, window_bytes, content_bytes if content_size_bytes else None, has_checksum


def _zstd_blocks_bound(data: memoryview, position: int, limit: int) -> int:
    bound = 0
    while bound < limit:
        header = int.from_bytes(data[position : position + 3], "little")
        if position + 3 > len(data):
            raise ValueError("a zstd frame without its last block")
        bound += ZSTD_LARGEST_BLOCK_BYTES
        if header & 1:
            break
        position += 3 + (1 if header >> 1 & 3 == ZSTD_RUN_LENGTH_BLOCK else header >> 3)
    return bound


def refused(codec: Codec, reason: str) -> InvalidBatch:
    """Not CORRUPT_MESSAGE: the CRC is right, so sending the same bytes again would not help."""
    return InvalidBatch(ErrorCode.INVALID_RECORD, f"records do not decompress as {codec.name.lower()}: {reason}")
