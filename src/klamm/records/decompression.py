"""Decompression in pieces, for whoever looks at records and keeps none of them.

A megabyte may hold a gigabyte, and honestly so. What comes out here comes in pieces of `PIECE_BYTES` or little more, so
neither memory nor a single step grows with it. The exceptions are what a codec packs as one: a block of lz4 (4 MiB), a
chunk of snappy, an lz4 frame with a checksum over all its content. Those are bounded by `WHOLE_BYTES`.

What no reader would see is refused: a stream that stops early, bytes behind its end, a second stream. So is what some
readers cannot read: blocks of lz4 that depend on one another, which Java's does not know.
"""

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias
from zlib import decompressobj
from zlib import error as zlib_error

import cramjam

from klamm.records.compression import (
    LZ4_BEST_RATIO,
    LZ4_BLOCK_SIZE,
    LZ4_MAGIC,
    SNAPPY_BEST_RATIO,
    ZSTD_LARGEST_BLOCK_BYTES,
    ZSTD_RUN_LENGTH_BLOCK,
    Codec,
    Packed,
    refused,
    snappy_chunks,
    zstd_start,
)

PIECE_BYTES = 128 << 10
WHOLE_BYTES = 64 << 20
MOST_BYTES = 2**31 - 1
"""Of all records of a batch. librdkafka counts no further."""
_MOST_BLOCKS = 256
"""In one piece: they may be tiny, or empty."""

Piece: TypeAlias = bytes | bytearray


def pieces(codec: int, packed: Packed, most_bytes: int = MOST_BYTES) -> Iterator[Piece]:
    """What was compressed, piece by piece; some of them may be empty. `InvalidBatch` where no more comes."""
    total = 0
    try:
        for piece in _PIECES[codec](packed):
            total += len(piece)
            if total > most_bytes:
                raise ValueError(f"more than {most_bytes} bytes come out")
            yield piece
    except (cramjam.DecompressionError, zlib_error, ValueError, IndexError) as error:
        raise refused(Codec(codec), str(error)) from error


def _plain(packed: Packed) -> Iterator[Piece]:
    for position in range(0, len(packed), PIECE_BYTES):
        yield bytes(packed.view[position : position + PIECE_BYTES])


# gzip

_GZIP_FED_BYTES = 32 << 10


def _gunzipped(packed: Packed) -> Iterator[Piece]:
    stream = decompressobj(wbits=31)
    # What has not been taken yet is copied each time, so only the small are fed whole.
    step = len(packed) if len(packed) <= PIECE_BYTES // 8 else _GZIP_FED_BYTES
    for position in range(0, len(packed), step or 1):
        piece = stream.decompress(packed.view[position : position + step], PIECE_BYTES)
        yield piece
        while not stream.eof and (len(piece) == PIECE_BYTES or stream.unconsumed_tail):
            piece = stream.decompress(stream.unconsumed_tail, PIECE_BYTES)
            yield piece
        if stream.eof:
            if stream.unused_data or position + step < len(packed):
                raise ValueError("bytes follow its end")
            return
    raise ValueError("it ends too early")


# snappy


def _unsnapped(packed: Packed) -> Iterator[Piece]:
    """Chunks, as many as make a piece. The raw format is one chunk."""
    group: list[tuple[int, int, int]] = []
    size = 0
    for start, end in snappy_chunks(packed):
        made = cramjam.snappy.decompress_raw_len(packed.view[start:end])
        if made > min(WHOLE_BYTES, (end - start) * SNAPPY_BEST_RATIO):
            raise ValueError(f"a chunk of {end - start} bytes claims to be {made}")
        if group and (size + made > PIECE_BYTES or len(group) == _MOST_BLOCKS):
            yield _unsnapped_group(packed.view, group, size)
            group, size = [], 0
        group.append((start, end, made))
        size += made
    yield _unsnapped_group(packed.view, group, size)


def _unsnapped_group(view: memoryview, group: list[tuple[int, int, int]], size: int) -> Piece:
    output = bytearray(size)
    position = 0
    with memoryview(output) as room:
        for start, end, made in group:
            cramjam.snappy.decompress_raw_into(view[start:end], room[position : position + made])
            position += made
    return output


# lz4

_LZ4_INDEPENDENT, _LZ4_BLOCK_CHECKSUM = 0x20, 0x10
_LZ4_CONTENT_SIZE, _LZ4_CONTENT_CHECKSUM = 0x08, 0x04
_LZ4_VERSION, _LZ4_VERSION_1, _LZ4_RESERVED = 0xC0, 0x40, 0x03
_LZ4_START = Struct("<IBB")
_LZ4_UNCOMPRESSED = 0x80000000
_LZ4_END = bytes(4)


def _lz4_unpacked(packed: Packed) -> Iterator[Piece]:
    magic, flags, descriptor = _LZ4_START.unpack_from(packed.view) if len(packed) > 6 else (0, 0, 0)
    if magic != LZ4_MAGIC or flags & _LZ4_VERSION != _LZ4_VERSION_1 or flags & _LZ4_RESERVED:
        raise ValueError("not an lz4 frame")
    if not flags & _LZ4_INDEPENDENT:
        raise ValueError("its blocks depend on one another, which Kafka's readers do not take")
    header_bytes = _LZ4_START.size + (8 if flags & _LZ4_CONTENT_SIZE else 0) + 1
    if packed.view[header_bytes - 1] != _header_checksum(bytes(packed.view[4 : header_bytes - 1])):
        raise ValueError("the checksum of its header is wrong")
    largest = 1 << 8 + 2 * (descriptor >> 4 & 7)
    runs = _lz4_runs(packed, header_bytes, flags, largest)
    start, end, size = next(runs)
    if end == len(packed):
        yield _unpacked_frame(packed.view, size)
    elif flags & _LZ4_CONTENT_CHECKSUM:
        # It covers the whole, so the whole has to be there at once.
        for _, _, more in runs:
            size += more
            yield b""
        yield _unpacked_frame(packed.view, min(size, WHOLE_BYTES))
    else:
        yield from _lz4_piecewise(packed, start, end, size, runs)


def _lz4_piecewise(
    packed: Packed, start: int, end: int, size: int, runs: Iterator[tuple[int, int, int]]
) -> Iterator[Piece]:
    """Blocks that stand alone make frames that stand alone."""
    flags, descriptor = packed.view[4], packed.view[5]
    begin = bytes((flags & ~_LZ4_CONTENT_SIZE, descriptor))
    header = LZ4_MAGIC.to_bytes(4, "little") + begin + bytes((_header_checksum(begin),))
    total = 0
    while True:
        is_last = end == len(packed)
        piece = _unpacked_frame(header + packed.view[start:end] + (b"" if is_last else _LZ4_END), size)
        total += len(piece)
        yield piece
        if is_last:
            break
        start, end, size = next(runs)
    if flags & _LZ4_CONTENT_SIZE and total != int.from_bytes(packed.view[6:14], "little"):
        raise ValueError("it has another size than it says")


def _lz4_runs(packed: Packed, position: int, flags: int, largest: int) -> Iterator[tuple[int, int, int]]:
    """Where each few blocks stand that make no more than a piece together, and what they make at most; a single one may
    make more. The last ones end with the frame, which must end where the bytes do."""
    checksum_bytes = 4 if flags & _LZ4_BLOCK_CHECKSUM else 0
    start, size, blocks = position, 0, 0
    while True:
        if position + 4 > len(packed):
            raise ValueError("it ends too early")
        (length,) = LZ4_BLOCK_SIZE.unpack_from(packed.view, position)
        if length == 0:
            break
        length &= ~_LZ4_UNCOMPRESSED
        made = min(largest, length * LZ4_BEST_RATIO)
        if blocks and (size + made > PIECE_BYTES or blocks == _MOST_BLOCKS):
            yield start, position, size
            start, size, blocks = position, 0, 0
        size += made
        blocks += 1
        position += 4 + length + checksum_bytes
    if position + 4 + (4 if flags & _LZ4_CONTENT_CHECKSUM else 0) != len(packed):
        raise ValueError("it does not end where its bytes do")
    yield start, len(packed), size


def _unpacked_frame(frame: "memoryview | bytes", most: int) -> Piece:
    output = bytearray(most)
    size = cramjam.lz4.decompress_into(frame, memoryview(output)) if most else 0
    del output[size:]
    return output


_PRIME_1, _PRIME_2, _PRIME_3, _PRIME_4, _PRIME_5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


def _header_checksum(descriptor: bytes) -> int:
    """The second byte of xxHash-32, as it is for less than sixteen bytes."""
    mask = 0xFFFFFFFF
    number = _PRIME_5 + len(descriptor)
    whole = len(descriptor) & ~3
    for position in range(0, whole, 4):
        number = number + int.from_bytes(descriptor[position : position + 4], "little") * _PRIME_3 & mask
        number = (number << 17 | number >> 15) * _PRIME_4 & mask
    for byte in descriptor[whole:]:
        number = number + byte * _PRIME_5 & mask
        number = (number << 11 | number >> 21) * _PRIME_1 & mask
    number = (number ^ number >> 15) * _PRIME_2 & mask
    number = (number ^ number >> 13) * _PRIME_3 & mask
    return (number ^ number >> 16) >> 8 & 0xFF


# zstd

_LARGE_WINDOW_BYTES = 8 << 20


def _zstd_unpacked(packed: Packed) -> Iterator[Piece]:
    """The window of what came last, to which later blocks refer, is the decoder's own memory."""
    position, window_bytes, content_bytes, has_checksum = zstd_start(packed.view)
    most = WHOLE_BYTES if window_bytes > _LARGE_WINDOW_BYTES else MOST_BYTES
    runs = _zstd_runs(packed, position, 4 if has_checksum else 0)
    end, size = next(runs)
    if end == len(packed) and size <= PIECE_BYTES:
        output = bytearray(size if content_bytes is None else min(size, content_bytes))
        del output[cramjam.zstd.decompress_into(packed.view, memoryview(output)) :]
        yield output
        return
    yield from _zstd_streamed(packed, end, runs, most)


def _zstd_streamed(packed: Packed, end: int, runs: Iterator[tuple[int, int]], most: int) -> Iterator[Piece]:
    # Not before it is needed: it takes 17 ms and 2 MiB.
    from zstandard import ZstdDecompressor, ZstdError

    stream = ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    start = total = 0
    try:
        while True:
            piece = stream.decompress(packed.view[start:end])
            total += len(piece)
            if total > most:
                raise ValueError(f"more than {most} bytes in so large a window")
            yield piece
            start = end
            end, _ = next(runs, (end, 0))
            if start == end:
                break
    except ZstdError as error:
        raise ValueError(str(error)) from error
    if not stream.eof or stream.unused_data:
        raise ValueError("it does not end where its bytes do")


def _zstd_runs(packed: Packed, position: int, checksum_bytes: int) -> Iterator[tuple[int, int]]:
    """Where each few blocks end that make no more than a piece together, and what they make at most. The last one must
    end where the bytes do."""
    size = blocks = 0
    while True:
        if position + 3 > len(packed):
            raise ValueError("it ends too early")
        header = int.from_bytes(packed.view[position : position + 3], "little")
        kind, length = header >> 1 & 3, header >> 3
        made = length if kind <= ZSTD_RUN_LENGTH_BLOCK else ZSTD_LARGEST_BLOCK_BYTES
        if made > ZSTD_LARGEST_BLOCK_BYTES:
            raise ValueError(f"a block of {made} bytes")
        if blocks and (size + made > PIECE_BYTES or blocks == _MOST_BLOCKS):
            yield position, size
            size = blocks = 0
        size += made
        blocks += 1
        position += 3 + (1 if kind == ZSTD_RUN_LENGTH_BLOCK else length)
        if header & 1:
            break
    if position + checksum_bytes != len(packed):
        raise ValueError("it does not end where its bytes do")
    yield len(packed), size


_PIECES = (_plain, _gunzipped, _unsnapped, _lz4_unpacked, _zstd_unpacked)
