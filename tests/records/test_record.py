"""Records taken out of a batch: what an honest one holds, and what a lying one gets."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.errors import ErrorCode
from klamm.records.batch import InvalidBatch, checked
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec, compressed
from klamm.records.record import InvalidRecords, Record, encode_record, records_of
from klamm.records.validation import validated

from .made import NOON, batch, changed, with_body


def refusal(built: bytes | bytearray) -> ErrorCode:
    with pytest.raises(InvalidBatch) as refused:
        list(records_of(built))
    return refused.value.code


def one_record(**changes: object) -> bytes:
    record = bytearray()
    encode_record(record, **{"offset_delta": 0, "timestamp_delta": 0, "key": b"k", "value": b"v", **changes})  # type: ignore[arg-type]
    return bytes(record)


def test_keys_values_and_headers_come_out_as_they_went_in() -> None:
    builder = BatchBuilder(base_offset=10)
    builder.append(None, b"no key", NOON)
    builder.append(b"no value", None, NOON + 5, [("empty", b""), ("null", None), ("twice", b"1"), ("twice", b"2")])
    builder.append(b"", b"", NOON - 70_000)
    assert list(records_of(builder.build())) == [
        Record(10, NOON, None, b"no key", ()),
        Record(11, NOON + 5, b"no value", None, (("empty", b""), ("null", None), ("twice", b"1"), ("twice", b"2"))),
        Record(12, NOON - 70_000, b"", b"", ()),
    ]


def test_header_names_that_are_not_text_survive() -> None:
    name = b"\xff\xfe".decode("utf-8", "surrogateescape")
    body = one_record(headers=[(name, b"x")])
    assert b"\xff\xfe" in body
    (record,) = records_of(with_body(body))
    assert record.headers == ((name, b"x"),)


def test_a_batch_without_records_has_none() -> None:
    assert list(records_of(BatchBuilder().build())) == []


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_every_length(delta: int) -> None:
    built = with_body(one_record(timestamp_delta=delta), base_timestamp=0)
    assert [record.timestamp for record in records_of(built)] == [delta]


# Lies


def test_record_length_past_the_end() -> None:
    body = one_record()
    assert refusal(with_body(bytes((body[0] + 2,)) + body[1:])) is ErrorCode.INVALID_RECORD
    assert refusal(with_body(b"\xfe\xff\xff\xff\x0f" + body[1:])) is ErrorCode.INVALID_RECORD


def test_record_length_negative() -> None:
    assert refusal(with_body(b"\x01" + one_record()[1:])) is ErrorCode.INVALID_RECORD


def test_record_length_that_does_not_match_its_fields() -> None:
    body = one_record() + one_record(offset_delta=1)
    assert refusal(with_body(bytes((body[0] - 2,)) + body[1:], count=2)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("field", [4, 6])
def test_key_or_value_longer_than_the_record(field: int) -> None:
    body = bytearray(one_record())
    for length in (b"\x7e", b"\xfe\xff\xff\xff\x0f"):
        assert refusal(with_body(bytes(body[:field]) + length + bytes(body[field + 1 :]))) is ErrorCode.INVALID_RECORD


def test_header_count_bomb() -> None:
    """Two billion headers in ten bytes."""
    body = bytes((0, 0, 0, 1, 1)) + b"\xfe\xff\xff\xff\x0f" + bytes(5)
    assert refusal(with_body(bytes((len(body) * 2,)) + body)) is ErrorCode.INVALID_RECORD


def test_header_count_negative() -> None:
    assert refusal(with_body(bytes((12, 0, 0, 0, 1, 1, 1)))) is ErrorCode.INVALID_RECORD


def test_header_without_a_name() -> None:
    assert refusal(with_body(bytes((16, 0, 0, 0, 1, 1, 2, 1, 1)))) is ErrorCode.INVALID_RECORD


def test_a_number_that_does_not_end() -> None:
    assert refusal(with_body(b"\x80" * 6 + b"\x00")) is ErrorCode.INVALID_RECORD
    assert refusal(with_body(bytes((30, 0)) + b"\x80" * 11 + bytes(3))) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("base", "delta"), [(2**63 - 1, 1), (0, 2**63), (0, -(2**63) - 1)])
def test_timestamp_overflow(base: int, delta: int) -> None:
    built = with_body(one_record(timestamp_delta=delta), base_timestamp=base)
    assert refusal(built) is ErrorCode.INVALID_TIMESTAMP


def test_fewer_records_than_counted() -> None:
    assert refusal(with_body(one_record(), count=2)) is ErrorCode.INVALID_RECORD


def test_more_records_than_counted() -> None:
    assert refusal(with_body(one_record() + one_record(offset_delta=1))) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (-1, 0), (0, 2)])
def test_offsets_that_do_not_ascend_or_leave_the_batch(deltas: tuple[int, int]) -> None:
    body = b"".join(one_record(offset_delta=delta) for delta in deltas)
    assert refusal(with_body(body, count=2)) is ErrorCode.INVALID_RECORD


def test_unknown_codec() -> None:
    assert refusal(batch(attributes=5)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_uncompressed_records_that_claim_to_be_compressed(codec: Codec) -> None:
    assert refusal(batch(attributes=codec)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_more_than_the_limit(codec: Codec) -> None:
    built = with_body(compressed(codec, one_record(value=bytes(5000))), codec)
    assert len(list(records_of(built, limit=6000))) == 1
    with pytest.raises(InvalidBatch):
        records_of(built, limit=5000)


@given(st.binary(max_size=60), st.integers(1, 5))
def test_noise_is_records_or_a_refusal(body: bytes, count: int) -> None:
    try:
        records = list(records_of(with_body(body, count=count)))
    except InvalidBatch:
        return
    assert len(records) == count


@given(st.data())
def test_one_changed_byte_is_records_or_a_refusal(data: st.DataObject) -> None:
    built = batch()
    built[data.draw(st.integers(61, len(built) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InvalidBatch):
        assert len(list(records_of(built))) == 3


# Validation for topics that look at single records


def test_the_youngest_of_valid_records() -> None:
    built = batch(Codec.GZIP)
    header = checked(memoryview(built))
    youngest = validated(built, header, need_keys=True, earliest_ms=NOON, latest_ms=NOON + 2)
    assert youngest == max(record.timestamp for record in records_of(built))


def test_no_more_errors_are_named_than_anybody_reads() -> None:
    builder = BatchBuilder()
    for _ in range(1_000):
        builder.append(None, b"v", NOON)
    built = builder.build()
    with pytest.raises(InvalidRecords) as refused:
        validated(built, checked(memoryview(built)), need_keys=True)
    assert len(refused.value.errors) == 100


def test_records_without_a_key_are_named() -> None:
    """A compacted topic refuses the whole batch and says which records are to blame (KIP-467)."""
    builder = BatchBuilder()
    for key in (b"a", None, b"b", None):
        builder.append(key, b"v", NOON)
    built = builder.build()
    assert validated(built, checked(memoryview(built))) == NOON
    with pytest.raises(InvalidRecords) as refused:
        validated(built, checked(memoryview(built)), need_keys=True)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in refused.value.errors] == [1, 3]


def test_records_out_of_time_are_named() -> None:
    builder = BatchBuilder()
    for timestamp in (NOON, NOON - 11, -1, NOON + 11, NOON + 10, NOON - 10):
        builder.append(b"k", b"v", timestamp)
    built = builder.build()
    with pytest.raises(InvalidRecords) as refused:
        validated(built, checked(memoryview(built)), earliest_ms=NOON - 10, latest_ms=NOON + 10)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [1, 3]


def test_with_keys_and_times_wrong_the_code_is_that_of_the_times() -> None:
    """As in Kafka: one code for the batch, all errors listed, at most one a record."""
    builder = BatchBuilder()
    builder.append(None, b"v", 5)
    builder.append(b"k", b"v", 5)
    built = builder.build()
    with pytest.raises(InvalidRecords) as refused:
        validated(built, checked(memoryview(built)), need_keys=True, earliest_ms=10)
    assert refused.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == [0, 1]


def test_a_producers_offsets_have_no_gaps() -> None:
    built = changed(with_body(one_record() + one_record(offset_delta=2), count=2), last_offset_delta=2)
    assert len(list(records_of(built))) == 2
    with pytest.raises(InvalidRecords) as refused:
        validated(built, checked(memoryview(batch())))
    assert refused.value.errors[0][0] == 1
