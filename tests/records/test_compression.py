"""Every codec goes round, reads what other people write, and never allocates what a bomb asks for."""

import gzip
import struct
import subprocess
import sys
import textwrap
import zlib

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode
from klamm.records.batch import InvalidBatch
from klamm.records.compression import Codec, by_name, compressed, decompressed

CODECS = list(Codec)[1:]
TEXT = b"".join(b"line %d of a long text; " % number for number in range(20_000))


def refusal(codec: Codec, data: bytes, limit: int = 2**20) -> ErrorCode:
    with pytest.raises(InvalidBatch) as refused:
        decompressed(codec, data, limit)
    return refused.value.code


@given(st.sampled_from(Codec), st.binary(max_size=5000), st.integers(1, 40))
def test_bytes_go_round(codec: Codec, data: bytes, times: int) -> None:
    data *= times
    assert decompressed(codec, compressed(codec, data), len(data)) == data


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("level", [None, 1, 9])
def test_long_texts_go_round_at_every_level(codec: Codec, level: int | None) -> None:
    packed = compressed(codec, memoryview(bytearray(TEXT)), level)
    assert decompressed(codec, memoryview(packed), len(TEXT)) == TEXT
    assert codec is Codec.NONE or len(packed) < len(TEXT) / 2


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compressed(codec, TEXT)
    assert len(decompressed(codec, packed, len(TEXT))) == len(TEXT)
    assert refusal(codec, packed, len(TEXT) - 1) is ErrorCode.INVALID_RECORD


def test_codecs_have_kafkas_names() -> None:
    assert [by_name(name) for name in ("none", "gzip", "snappy", "lz4", "zstd")] == list(Codec)
    for unknown in ("producer", "uncompressed", "brotli", "GZIP", ""):
        with pytest.raises(ValueError, match="codec"):
            by_name(unknown)


# What others write


def test_snappy_as_java_writes_it() -> None:
    packed = compressed(Codec.SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (length,) = struct.unpack_from(">i", packed, 16)
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + length])) == TEXT[: 32 * 1024]


def test_snappy_as_librdkafka_writes_it() -> None:
    assert decompressed(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("extras", [False, True])
def test_lz4_with_every_flag(block_size: int, linked: bool, extras: bool) -> None:
    packed = lz4.frame.compress(
        TEXT,
        block_size=block_size,
        block_linked=linked,
        content_checksum=extras,
        block_checksum=extras,
        store_size=extras,
    )
    assert decompressed(Codec.LZ4, packed, len(TEXT)) == TEXT


def test_lz4_blocks_are_independent() -> None:
    """Kafka's own reader knows no others; the version is 1 and nothing is reserved."""
    flags = compressed(Codec.LZ4, TEXT)[4]
    assert flags & 0b1110_0011 == 0b0110_0000
    assert lz4.frame.decompress(compressed(Codec.LZ4, TEXT)) == TEXT


def test_gzip_with_a_file_name_in_its_header() -> None:
    packed = gzip.compress(TEXT)
    named = packed[:3] + b"\x08" + packed[4:10] + b"name\x00" + packed[10:]
    assert decompressed(Codec.GZIP, named, len(TEXT)) == TEXT


def zstd_frame(blocks: list[tuple[int, int, bytes]], window: int = 11, size: int | None = None) -> bytes:
    """A zstd frame by hand from (type, size, content) of its blocks, with a declared size or, like Java's, without."""
    head = struct.pack("<IBB", 0xFD2FB528, 0, window << 3)
    if size is not None:
        head = struct.pack("<IBQ", 0xFD2FB528, 0xE0, size)
    for index, (kind, length, content) in enumerate(blocks):
        last = index == len(blocks) - 1
        head += (last | kind << 1 | length << 3).to_bytes(3, "little") + content
    return head


@pytest.mark.parametrize("size", [None, 4096])
def test_zstd_frames_with_and_without_a_declared_size(size: int | None) -> None:
    blocks = [(0, 96, b"raw!" * 24), (1, 4000, b"a")]
    assert decompressed(Codec.ZSTD, zstd_frame(blocks, size=size), 4096) == b"raw!" * 24 + b"a" * 4000


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 65_791, 65_792, 100_000])
def test_zstd_sizes_of_every_width(size: int) -> None:
    assert len(decompressed(Codec.ZSTD, compressed(Codec.ZSTD, bytes(size)), size)) == size


# Damage


@pytest.mark.parametrize("codec", CODECS)
def test_corrupt_stream_cut_anywhere(codec: Codec) -> None:
    packed = compressed(codec, TEXT[:5000])
    for end in range(1, len(packed)):
        try:
            data = decompressed(codec, packed[:end], 2**20)
        except InvalidBatch:
            continue
        # Snappy's chunks end where they like, and the records behind will be missing.
        assert codec is Codec.SNAPPY
        assert data == TEXT[: len(data)]


@settings(max_examples=400)
@given(st.sampled_from(CODECS), st.data())
def test_corrupt_stream_with_a_changed_byte_is_data_or_a_refusal(codec: Codec, data: st.DataObject) -> None:
    packed = bytearray(compressed(codec, TEXT[:3000]))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(decompressed(codec, packed, 2**20)) <= 2**20
    except InvalidBatch as refused:
        assert refused.code is ErrorCode.INVALID_RECORD


@settings(max_examples=400)
@given(st.sampled_from(CODECS), st.sampled_from((0, 4, 6, 8, 16)), st.binary(max_size=100))
def test_noise_is_data_or_a_refusal(codec: Codec, kept: int, noise: bytes) -> None:
    try:
        decompressed(codec, compressed(codec, TEXT[:100])[:kept] + noise, 2**20)
    except InvalidBatch as refused:
        assert refused.code is ErrorCode.INVALID_RECORD


def test_snappy_chunks_that_lie() -> None:
    head = compressed(Codec.SNAPPY, b"")
    assert len(head) == 16
    for length in (-1, 0, 5, 2**31 - 1):
        refusal(Codec.SNAPPY, head + struct.pack(">i", length) + b"\x04\x00\x00\x00"[:4])
    refusal(Codec.SNAPPY, head[:12])
    refusal(Codec.SNAPPY, head + b"\x00\x00")


def test_snappy_that_claims_a_gigabyte() -> None:
    """CVE-2023-34455 and its siblings: the length that a chunk declares is not to be believed."""
    refusal(Codec.SNAPPY, b"\x80\x80\x80\x80\x04" + bytes(1000), 2**31)
    refusal(Codec.SNAPPY, compressed(Codec.SNAPPY, b"") + struct.pack(">i", 6) + b"\x80\x80\x80\x80\x04\x00", 2**31)


def test_zstd_with_a_large_window_gets_half_of_the_limit() -> None:
    """Its decoder holds the other half. Java's level 22 declares such windows, for contents of any size."""
    frame = zstd_frame([(1, 2**17, b"a")] * 8, window=17)
    assert len(decompressed(Codec.ZSTD, frame, 2**21)) == 2**20
    refusal(Codec.ZSTD, frame, 2**21 - 2)


def test_zstd_that_claims_too_large_a_window() -> None:
    refusal(Codec.ZSTD, zstd_frame([(1, 100, b"a")], window=21))


def test_zstd_that_claims_a_gigabyte() -> None:
    refusal(Codec.ZSTD, zstd_frame([(1, 100, b"a")], size=2**30))


# Bombs


def gzip_bomb(claim: int = 2**30) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(2**22)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08" + bytes(7) + piece * 256 + b"\x03\x00" + struct.pack("<II", 0, claim)


def gzip_bomb_that_claims_to_be_small() -> bytes:
    return gzip_bomb(1000)


def gzip_bomb_of_many_members() -> bytes:
    return gzip.compress(bytes(2**22), mtime=0) * 256


def snappy_bomb() -> bytes:
    """No kilobyte of snappy can hold more than 21; so it has to lie, or be large."""
    return bytes(cramjam.snappy.compress_raw(bytes(2**30)))


def snappy_bomb_of_many_chunks() -> bytes:
    chunk = bytes(cramjam.snappy.compress_raw(bytes(2**22)))
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + (struct.pack(">i", len(chunk)) + chunk) * 256


def lz4_bomb() -> bytes:
    return bytes(lz4.frame.compress(bytes(2**30), block_size=7, block_linked=False))


def lz4_bomb_of_small_blocks() -> bytes:
    return bytes(lz4.frame.compress(bytes(2**30), block_size=4))


def zstd_bomb() -> bytes:
    return zstd_frame([(1, 2**17, b"a")] * 2**13)


def zstd_bomb_with_a_large_window() -> bytes:
    return zstd_frame([(1, 2**17, b"a")] * 2**13, window=17)


def zstd_bomb_that_claims_to_be_small() -> bytes:
    return zstd_frame([(1, 2**17, b"a")] * 2**13, size=1000)


def zstd_bomb_that_says_so() -> bytes:
    return zstd_frame([(1, 2**17, b"a")] * 2**13, size=2**30)


BOMBS = [
    (Codec.GZIP, gzip_bomb),
    (Codec.GZIP, gzip_bomb_that_claims_to_be_small),
    (Codec.GZIP, gzip_bomb_of_many_members),
    (Codec.SNAPPY, snappy_bomb),
    (Codec.SNAPPY, snappy_bomb_of_many_chunks),
    (Codec.LZ4, lz4_bomb),
    (Codec.LZ4, lz4_bomb_of_small_blocks),
    (Codec.ZSTD, zstd_bomb),
    (Codec.ZSTD, zstd_bomb_with_a_large_window),
    (Codec.ZSTD, zstd_bomb_that_claims_to_be_small),
    (Codec.ZSTD, zstd_bomb_that_says_so),
]

VICTIM = """
    import sys
    from klamm.records.batch import InvalidBatch
    from klamm.records.compression import Codec, compressed, decompressed

    def peak_bytes():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

    codec, limit = Codec(int(sys.argv[1])), int(sys.argv[2])
    decompressed(codec, compressed(codec, b"warm"), 100)
    bomb = sys.stdin.buffer.read()
    before = peak_bytes()
    try:
        decompressed(codec, bomb, limit)
    except InvalidBatch:
        print(peak_bytes() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of its memory from /proc")
@pytest.mark.parametrize(("codec", "bomb"), BOMBS, ids=[bomb.__name__ for _, bomb in BOMBS])
def test_a_gigabyte_in_a_small_parcel_costs_no_more_than_the_limit(codec: Codec, bomb: object) -> None:
    """Measured by the kernel, in a process of its own, with what decoders need to work."""
    limit, working_memory = 32 * 2**20, 10 * 2**20
    command = [sys.executable, "-c", textwrap.dedent(VICTIM), str(int(codec)), str(limit)]
    answer = subprocess.run(command, input=bomb(), capture_output=True, check=True)  # type: ignore[operator]
    assert int(answer.stdout) <= limit + working_memory
