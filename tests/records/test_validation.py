"""Records that some client could not read are found out, and all others are taken."""

import tracemalloc
import zlib
from random import Random
from typing import Any

import lz4.frame
import pytest
import zstandard

from klamm.errors import ErrorCode
from klamm.records.batch import InvalidBatch, checked
from klamm.records.compression import Codec, compressed
from klamm.records.record import InvalidRecords
from klamm.records.validation import Validation, validated
from tests.records import naive
from tests.records.malformed import BASE_MS, Parts, batch_of, drawn, number


def judged(batch: bytearray, **rules: Any) -> int | ErrorCode:
    """The largest timestamp, or the code of the refusal."""
    view = memoryview(batch)
    try:
        return finished(validated(view, checked(view), **rules))
    except InvalidBatch as error:
        return error.code


def finished(found: int | Validation) -> int:
    if isinstance(found, int):
        return found
    while not found.step():
        pass
    return found.youngest


def in_pieces(batch: bytearray, size: int, monkeypatch: pytest.MonkeyPatch) -> int | ErrorCode:
    """The same, by the long way, in pieces of this size."""
    monkeypatch.setattr("klamm.records.decompression.PIECE_BYTES", size)
    view = memoryview(batch)
    try:
        return finished(Validation(view, checked(view)))
    except InvalidBatch as error:
        return error.code
    finally:
        monkeypatch.undo()


def expected(batch: bytearray) -> int | None:
    try:
        return naive.youngest(batch, checked(memoryview(batch)))
    except (naive.Unreadable, InvalidBatch):
        return None


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_a_beginner(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,200 batches, a fifth of them sound, by the short way and in pieces of all sizes."""
    random = Random(seed)
    for each in range(150):
        batch, done = drawn(random, sound=each % 5 == 0)
        wanted = expected(batch)
        what = f"seed {seed}, batch {each}: {done}"
        assert each % 5 or wanted is not None, what
        size = random.choice((1, 2, 7, 30, 1000, 128 << 10))
        for found in (judged(batch), in_pieces(batch, size if len(batch) < 2_000 else 1000, monkeypatch)):
            if wanted is None:
                assert found in (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP), what
            else:
                assert found == wanted and not isinstance(found, ErrorCode), what


def records(count: int, **changes: Any) -> list[Parts]:
    return [Parts(index // 8, index, None, b"v" * 20, [], **changes) for index in range(count)]


def judged_records(parts: list[Parts], count: int | None = None, codec: Codec = Codec.NONE, **rules: Any) -> Any:
    body = b"".join(part.encoded() for part in parts)
    return judged(batch_of(codec, compressed(codec, body), len(parts) if count is None else count), **rules)


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 63, 64, 65, 500, 8191, 8192, 8193, 20_000])
def test_offsets_may_need_bytes_of_any_number(count: int) -> None:
    assert judged_records(records(count)) == BASE_MS + (count - 1) // 8
    last_is_wrong = records(count)
    last_is_wrong[-1].offset += 1
    assert judged_records(last_is_wrong) == ErrorCode.INVALID_RECORD


def test_a_count_of_two_thousand_million_in_one_record_is_found_out() -> None:
    """Offsets would jump by so much, and no reader would ever find the records."""
    assert judged_records(records(1), 2**31 - 1, Codec.GZIP) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_what_is_not_compressed_at_all_is_found_out(codec: Codec) -> None:
    assert judged(batch_of(codec, b"garbage" * 10, 3)) == ErrorCode.INVALID_RECORD
    assert judged(batch_of(codec, b"", 3)) == ErrorCode.INVALID_RECORD


def test_blocks_of_lz4_that_depend_on_one_another_are_for_no_reader_in_java() -> None:
    body = b"".join(part.encoded() for part in records(4000))
    linked, apart = (lz4.frame.compress(body, block_size=4, block_linked=linked) for linked in (True, False))
    assert judged(batch_of(Codec.LZ4, linked, 4000)) == ErrorCode.INVALID_RECORD
    assert judged(batch_of(Codec.LZ4, apart, 4000)) == BASE_MS + 3999 // 8


def test_a_length_below_minus_one_is_null_to_some_and_an_error_to_others() -> None:
    assert judged_records(records(30, key_length=-1)) == BASE_MS + 3
    assert judged_records(records(30, key_length=-2)) == ErrorCode.INVALID_RECORD


def test_bad_records_are_named() -> None:
    parts = records(30)
    parts[7].offset = 70
    parts[20].time = -BASE_MS - 2
    parts[21].key = b"k"
    body = b"".join(part.encoded() for part in parts)
    view = memoryview(batch_of(Codec.NONE, body, 30))
    with pytest.raises(InvalidRecords) as refused:
        validated(view, checked(view))
    assert [index for index, _ in refused.value.errors] == [7, 20]
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
    with pytest.raises(InvalidRecords) as refused:
        validated(view, checked(view), need_keys=True)
    assert [index for index, _ in refused.value.errors] == [index for index in range(30) if index != 21]


@pytest.mark.parametrize("count", [5, 40])
def test_times_have_a_window(count: int) -> None:
    parts = records(count)
    window = {"earliest_ms": BASE_MS, "latest_ms": BASE_MS + 10}
    assert judged_records(parts, **window) == BASE_MS + (count - 1) // 8
    parts[3].time = -BASE_MS - 1
    assert judged_records(parts, **window) == BASE_MS + (count - 1) // 8, "-1 is no time at all"
    for time in (-1, 11):
        parts[3].time = time
        assert judged_records(parts, **window) == ErrorCode.INVALID_TIMESTAMP
        assert not isinstance(judged_records(parts), ErrorCode)


def test_a_window_without_end_is_not_wider_than_a_timestamp() -> None:
    parts = records(3)
    parts[1].time = 2**63 - 1
    assert judged_records(parts, latest_ms=BASE_MS + 2**63 - 1) == ErrorCode.INVALID_TIMESTAMP


SIZES = {Codec.NONE: 4 << 20, Codec.GZIP: 1 << 30, Codec.SNAPPY: 16 << 20, Codec.LZ4: 256 << 20, Codec.ZSTD: 1 << 30}


@pytest.mark.parametrize("codec", list(Codec))
def test_a_gigabyte_comes_in_pieces(codec: Codec) -> None:
    """Honest batches of any ratio are taken; what is held meanwhile does not grow with them."""
    view = memoryview(batch_of(codec, packed_zeros(codec, SIZES[codec]), 1))
    tracemalloc.start()
    try:
        found = validated(view, checked(view))
        steps = 0
        if isinstance(found, Validation):
            while not found.step():
                steps += 1
            found = found.youngest
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == BASE_MS
    assert peak < 4 << 20
    assert steps > SIZES[codec] >> 21 or codec is Codec.NONE, "of what is plain only the head is looked at"


def packed_zeros(codec: Codec, size: int) -> bytes:
    """One record with a value of so many zeros."""
    inner = bytes(1) + number(0) + number(0) + number(-1) + number(size)
    start, end = number(len(inner) + size + 1) + inner, number(0)
    pieces = (start, *(bytes(1 << 20) for _ in range(size >> 20)), end)
    if codec in (Codec.GZIP, Codec.ZSTD):
        stream: Any = zlib.compressobj(1, wbits=31) if codec is Codec.GZIP else zstandard.ZstdCompressor().compressobj()
        return b"".join([*map(stream.compress, pieces), stream.flush()])
    return compressed(codec, b"".join(pieces))
