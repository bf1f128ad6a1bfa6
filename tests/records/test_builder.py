"""Batches built and rebuilt: what goes in comes out, whatever the codec, and what is dropped leaves a gap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.records.batch import checked, intact, set_append_time, stamp
from klamm.records.builder import BatchBuilder, rebuilt
from klamm.records.compression import Codec
from klamm.records.record import Record, records_of

from .made import NOON, batch, record_lists

codecs = st.sampled_from(Codec)


@given(record_lists(), codecs)
def test_records_go_round(records: list[Record], codec: Codec) -> None:
    builder = BatchBuilder(codec, base_offset=records[0].offset, leader_epoch=4)
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers, offset=record.offset)
    built = builder.build()
    assert list(records_of(built)) == records
    header = intact(memoryview(built))
    assert (header.base_offset, header.last_offset) == (records[0].offset, records[-1].offset)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert header.leader_epoch == 4


@given(record_lists(), codecs)
def test_what_a_producer_builds_passes_the_door(records: list[Record], codec: Codec) -> None:
    builder = BatchBuilder(codec, producer_id=1, producer_epoch=0, base_sequence=9)
    offsets = [builder.append(record.key, record.value, record.timestamp, record.headers) for record in records]
    assert offsets == list(range(len(records)))
    header = checked(memoryview(builder.build()))
    assert header.count == len(records)
    assert header.codec is codec


@given(st.data(), record_lists(), codecs, codecs)
def test_a_rebuilt_batch_is_the_same_with_fewer_records(
    data: st.DataObject, records: list[Record], before: Codec, after: Codec
) -> None:
    builder = BatchBuilder(before, records[0].offset, None, 7, 2, 40, 5, 0x10)
    for record in records:
        builder.append(record.key, record.value, record.timestamp, record.headers, offset=record.offset)
    original = builder.build()
    kept = [record for record in records if data.draw(st.booleans())]
    again = rebuilt(original, kept, after)
    assert list(records_of(again)) == kept
    old, new = intact(memoryview(original)), intact(memoryview(again))
    assert (new.base_offset, new.last_offset, new.leader_epoch) == (old.base_offset, old.last_offset, old.leader_epoch)
    assert (new.producer_id, new.producer_epoch, new.base_sequence) == (7, 2, 40)
    assert new.last_sequence == old.last_sequence
    assert new.is_transactional
    assert new.base_timestamp == old.base_timestamp
    assert new.max_timestamp == max((record.timestamp for record in kept), default=old.max_timestamp)
    assert new.codec is (after if kept else Codec.NONE)


def test_rebuilding_keeps_the_append_time() -> None:
    original = batch()
    set_append_time(memoryview(original), NOON + 99)
    again = rebuilt(original, list(records_of(original))[:1], Codec.LZ4)
    header = intact(memoryview(again))
    assert header.log_append_time
    assert header.max_timestamp == NOON + 99
    assert [record.timestamp for record in records_of(again)] == [NOON + 99]


def test_a_batch_all_of_whose_records_are_gone_is_a_header() -> None:
    """It stays in the log as long as its producer's last sequence must be known."""
    original = batch(Codec.ZSTD)
    stamp(memoryview(original), 100, 3)
    again = rebuilt(original, [], Codec.ZSTD)
    header = intact(memoryview(again))
    assert len(again) == 61
    assert (header.base_offset, header.last_offset, header.count) == (100, 102, 0)
    assert header.last_sequence == 42
    assert list(records_of(again)) == []


def test_a_delete_horizon_moves_the_base_but_no_timestamp() -> None:
    original = batch()
    again = rebuilt(original, records_of(original), Codec.NONE, delete_horizon_ms=NOON + 86_400_000)
    header = intact(memoryview(again))
    assert header.delete_horizon_ms == NOON + 86_400_000
    assert header.max_timestamp == NOON + 2
    assert list(records_of(again)) == list(records_of(original))
    once_more = rebuilt(again, list(records_of(again))[1:], Codec.GZIP)
    assert intact(memoryview(once_more)).delete_horizon_ms == NOON + 86_400_000
    assert list(records_of(once_more)) == list(records_of(original))[1:]


def test_the_size_is_known_before_building() -> None:
    builder = BatchBuilder()
    assert builder.size_bytes == 61
    builder.append(b"k", b"v" * 1000, NOON)
    assert builder.size_bytes == len(builder.build())


def test_building_twice_gives_the_same_batch() -> None:
    builder = BatchBuilder(Codec.GZIP)
    builder.append(b"k", b"v", NOON)
    assert builder.build() == builder.build()


def test_offsets_only_ascend() -> None:
    builder = BatchBuilder(base_offset=5)
    builder.append(None, None, NOON, offset=9)
    with pytest.raises(AssertionError):
        builder.append(None, None, NOON, offset=9)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_compression_makes_it_smaller(codec: Codec) -> None:
    assert len(batch(codec, records=500)) < len(batch(records=500)) / 2
