"""The header as a value, and what may be changed in place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.errors import ErrorCode
from klamm.records.batch import (
    HEADER_BYTES,
    MAX_SEQUENCE,
    InvalidBatch,
    batches,
    checked,
    intact,
    read_header,
    set_append_time,
    set_max_timestamp,
    stamp,
)
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import records_of

from .made import NOON, batch, changed


def test_a_header_tells_what_its_batch_is() -> None:
    built = batch(Codec.LZ4)
    header = checked(memoryview(built))
    assert header.size_bytes == len(built)
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (0, 2, 3, 3)
    assert (header.base_timestamp, header.max_timestamp) == (NOON, NOON + 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (7, 0, 40, 42)
    assert header.codec is Codec.LZ4
    assert header.has_producer
    assert not (header.is_control or header.is_transactional or header.log_append_time)
    assert header.delete_horizon_ms is None
    assert repr(header) == f"<batch 0..2 epoch=-1 {len(built)} bytes lz4 producer=7/0 sequence=40>"


def test_the_header_has_61_bytes() -> None:
    assert HEADER_BYTES == 61


def test_stamping_gives_a_batch_its_place_and_leaves_the_crc_right() -> None:
    built = batch()
    before = bytes(built)
    stamp(memoryview(built), 2**40, 17)
    header = intact(memoryview(built))
    assert (header.base_offset, header.leader_epoch) == (2**40, 17)
    assert bytes(built[16:]) == before[16:]
    assert built[8:12] == before[8:12]
    assert [record.offset for record in records_of(built)] == [2**40, 2**40 + 1, 2**40 + 2]


def test_append_time_is_every_records_timestamp() -> None:
    built = batch(Codec.ZSTD)
    set_append_time(memoryview(built), NOON + 99)
    header = intact(memoryview(built))
    assert header.log_append_time
    assert header.codec is Codec.ZSTD
    assert header.max_timestamp == NOON + 99
    assert {record.timestamp for record in records_of(built)} == {NOON + 99}


def test_a_largest_timestamp_can_be_corrected() -> None:
    """kafka-go writes the last record's timestamp where the largest belongs; Kafka corrects it."""
    built = batch(max_timestamp=NOON - 5)
    assert checked(memoryview(built)).max_timestamp < checked(memoryview(built)).base_timestamp
    set_max_timestamp(memoryview(built), NOON + 2)
    assert bytes(built) == bytes(batch())


@pytest.mark.parametrize(
    ("base_sequence", "count", "last"),
    [(0, 1, 0), (MAX_SEQUENCE - 2, 3, MAX_SEQUENCE), (MAX_SEQUENCE - 1, 3, 0), (MAX_SEQUENCE, 3, 1), (-1, 3, -1)],
)
def test_sequences_wrap_after_the_largest(base_sequence: int, count: int, last: int) -> None:
    header = read_header(batch(base_sequence=base_sequence, count=count, last_offset_delta=count - 1))
    assert header.last_sequence == last


def test_a_delete_horizon_stands_in_the_base_timestamps_place() -> None:
    assert read_header(batch(attributes=0x40, base_timestamp=123)).delete_horizon_ms == 123


def test_a_slice_of_a_log_is_walked_batch_by_batch() -> None:
    first, second = batch(), batch(Codec.GZIP, records=1)
    stamp(memoryview(second), 3, 0)
    walked = list(batches(first + second))
    assert [position for position, _ in walked] == [0, len(first)]
    assert [header.base_offset for _, header in walked] == [0, 3]


@given(st.data())
def test_the_walk_stops_at_a_torn_tail(data: st.DataObject) -> None:
    whole, torn = batch(), batch(Codec.SNAPPY)
    kept = data.draw(st.integers(0, len(torn) - 1))
    assert [position for position, _ in batches(whole + torn[:kept])] == [0]


def test_the_walk_stops_at_zeros_and_at_foreign_bytes() -> None:
    assert len(list(batches(batch() + bytes(200)))) == 1
    assert len(list(batches(batch() + b"\xff" * 200))) == 1
    assert len(list(batches(batch() + changed(batch(), magic=1)))) == 1
    assert list(batches(b"")) == []


def test_the_walk_reads_any_position_of_a_larger_buffer() -> None:
    built = batch()
    assert read_header(b"xyz" + built, 3) == read_header(built)


@pytest.mark.parametrize("damage", [b"", b"short", bytes(batch()[:-1]), bytes(batch() + b"x"), bytes(batch(magic=1))])
def test_stored_bytes_that_are_not_one_batch_are_corrupt(damage: bytes) -> None:
    with pytest.raises(InvalidBatch) as refused:
        intact(memoryview(damage))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_stored_bytes_may_be_what_no_producer_may_send() -> None:
    """A control batch, one without records after compaction, offsets with gaps: all of them have been checked once."""
    builder = BatchBuilder(base_offset=5, attributes=0x20)
    assert intact(memoryview(builder.build())).is_control


def test_a_flipped_bit_in_stored_bytes_is_corrupt() -> None:
    built = batch()
    built[70] ^= 1
    with pytest.raises(InvalidBatch, match="CRC"):
        intact(memoryview(built))
