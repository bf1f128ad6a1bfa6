"""What a producer may not send, and the error it gets: the cases of our list of bad input that a header shows.

The codes are those of Kafka 4.3.1. Where Kafka has none of its own (an unknown codec ends in UNKNOWN_SERVER_ERROR)
or lets pass what we refuse, the test says so.
"""

from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode
from klamm.records.batch import LEADER_EPOCH_AT, MAGIC_AT, MAX_SEQUENCE, Batch, InvalidBatch, checked
from klamm.records.compression import Codec

from .made import batch, changed

INVALID_RECORD = ErrorCode.INVALID_RECORD
CORRUPT = ErrorCode.CORRUPT_MESSAGE


def refusal(built: bytes | bytearray) -> ErrorCode:
    with pytest.raises(InvalidBatch) as refused:
        checked(memoryview(built))
    return refused.value.code


def legacy(magic: int, payload: bytes = b"value") -> bytes:
    """A message of format 0 or 1, as clients older than Kafka 0.11 send it."""
    timestamp = pack(">q", 1) if magic else b""
    message = pack(">Ibb", 0, magic, 0) + timestamp + pack(">i", -1) + pack(">i", len(payload)) + payload
    return pack(">qi", 0, len(message)) + message


# Sizes and formats


def test_no_bytes() -> None:
    assert refusal(b"") is INVALID_RECORD


def test_less_than_a_header() -> None:
    assert refusal(batch()[:16]) is INVALID_RECORD
    assert refusal(batch()[:60]) is INVALID_RECORD


def test_batch_length_more_than_the_bytes() -> None:
    assert refusal(batch()[:-1]) is INVALID_RECORD


def test_batch_length_less_than_the_bytes() -> None:
    """Kafka cuts off what is not another batch."""
    assert refusal(batch() + b"x") is INVALID_RECORD


def test_batch_length_too_small_for_a_header() -> None:
    assert refusal(batch(length=48)) is CORRUPT
    assert refusal(batch(length=13)) is CORRUPT
    assert refusal(batch(length=0)) is CORRUPT


def test_batch_length_negative() -> None:
    assert refusal(batch(length=-1)) is CORRUPT
    assert refusal(batch(length=-(2**31))) is CORRUPT


def test_several_batches() -> None:
    assert refusal(batch() + batch()) is INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_format(magic: int) -> None:
    assert refusal(legacy(magic)) is INVALID_RECORD
    assert refusal(legacy(magic, bytes(100))) is INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_format_nested(magic: int) -> None:
    """What used to be compression: a message whose value is messages."""
    assert refusal(legacy(magic, legacy(magic) * 3)) is INVALID_RECORD


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_wrong_magic(magic: int) -> None:
    assert refusal(batch(magic=magic)) is CORRUPT
    assert refusal(batch(magic=magic)[:30]) is CORRUPT


def test_base_offset_is_not_the_producers_to_choose() -> None:
    assert refusal(batch(base_offset=1)) is INVALID_RECORD


# The CRC


def test_bad_crc() -> None:
    assert refusal(batch(crc=0)) is CORRUPT


@settings(max_examples=300)
@given(codec=st.sampled_from(Codec), data=st.data())
def test_any_flipped_byte_is_seen(codec: Codec, data: st.DataObject) -> None:
    """Or it is in the leader's epoch, which is not the producer's and is written over."""
    good = batch(codec)
    position = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[position] ^= data.draw(st.integers(1, 255))
    if LEADER_EPOCH_AT <= position < MAGIC_AT:
        assert checked(memoryview(bad)).crc == checked(memoryview(good)).crc
    else:
        refusal(bad)


def test_every_flipped_bit_is_seen() -> None:
    good = batch(Codec.SNAPPY)
    for position in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[position] ^= 1 << bit
            if not LEADER_EPOCH_AT <= position < MAGIC_AT:
                refusal(bad)


@given(st.binary(max_size=200))
def test_noise_is_refused_and_nothing_worse(noise: bytes) -> None:
    refusal(noise)


@given(fields=st.lists(st.integers(0, 255), min_size=40, max_size=40))
def test_a_right_crc_over_nonsense_is_a_batch_or_a_refusal(fields: list[int]) -> None:
    built = batch()
    built[21:61] = bytes(fields)
    changed(built)
    try:
        header = checked(memoryview(built))
    except InvalidBatch:
        return
    assert is_sane(header)


def is_sane(header: Batch) -> bool:
    """What everyone inside relies on, written as a beginner would."""
    return (
        1 <= header.count == header.last_offset_delta + 1
        and header.codec in Codec
        and not header.is_control
        and not header.log_append_time
        and header.delete_horizon_ms is None
        and header.base_timestamp >= -1
        and header.max_timestamp >= -1
        and header.producer_id >= -1
        and (not header.has_producer or (header.producer_epoch >= 0 and 0 <= header.base_sequence <= MAX_SEQUENCE))
        and (header.has_producer or not header.is_transactional)
    )


# Counts


@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_count_zero_or_negative(count: int) -> None:
    assert refusal(batch(count=count)) is INVALID_RECORD
    assert refusal(batch(count=count, last_offset_delta=max(count - 1, -(2**31)))) is INVALID_RECORD


@pytest.mark.parametrize("last_offset_delta", [-1, 1, 3, 2**31 - 1])
def test_last_offset_delta_against_count(last_offset_delta: int) -> None:
    assert refusal(batch(last_offset_delta=last_offset_delta)) is INVALID_RECORD


def test_more_records_than_fit() -> None:
    """Kafka finds out when it reads them. A count of two billion would use up as many offsets."""
    assert refusal(batch(count=2**31 - 1, last_offset_delta=2**31 - 2)) is INVALID_RECORD
    assert checked(memoryview(batch(records=1000))).count == 1000


def test_the_smallest_records_fit() -> None:
    built = batch(records=0)
    built += bytes((12, 0, 0, 0, 1, 1, 0)) * 5
    changed(built, length=len(built) - 12, count=5, last_offset_delta=4, base_timestamp=-1)
    assert checked(memoryview(built)).count == 5


# Attributes


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    assert refusal(batch(attributes=codec)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_control_batch_from_a_client() -> None:
    assert refusal(batch(attributes=0x20)) is INVALID_RECORD
    assert refusal(batch(attributes=0x30)) is INVALID_RECORD


def test_log_append_time_is_not_the_producers_to_claim() -> None:
    """Kafka refuses it on topics with LogAppendTime, and on others changes it back."""
    assert refusal(batch(attributes=0x08)) is ErrorCode.INVALID_TIMESTAMP


def test_delete_horizon_from_a_client() -> None:
    """Kafka lets it pass; the base timestamp would then be taken for the moment to drop tombstones."""
    assert refusal(batch(attributes=0x40)) is INVALID_RECORD


def test_unused_attributes_are_ignored() -> None:
    assert checked(memoryview(batch(attributes=0x7F80))).attributes == 0x7F80


# Timestamps


@pytest.mark.parametrize("timestamp", [-2, -(2**63)])
def test_timestamps_before_1970(timestamp: int) -> None:
    """Kafka lets some of them pass, and its log cleaner fails on them later."""
    assert refusal(batch(base_timestamp=timestamp)) is ErrorCode.INVALID_TIMESTAMP
    assert refusal(batch(max_timestamp=timestamp)) is ErrorCode.INVALID_TIMESTAMP


def test_no_timestamp_is_a_timestamp() -> None:
    assert checked(memoryview(batch(base_timestamp=-1, max_timestamp=-1))).base_timestamp == -1


# Producers


def test_a_batch_without_a_producer() -> None:
    """Sarama leaves the sequence at 0 when it has no producer id."""
    assert not checked(memoryview(batch(producer_id=-1, producer_epoch=-1, base_sequence=-1))).has_producer
    assert not checked(memoryview(batch(producer_id=-1, producer_epoch=-1, base_sequence=0))).has_producer


@pytest.mark.parametrize("base_sequence", [-1, -(2**31)])
def test_sequence_out_of_range(base_sequence: int) -> None:
    assert refusal(batch(base_sequence=base_sequence)) is INVALID_RECORD


def test_sequence_that_wraps() -> None:
    assert checked(memoryview(batch(base_sequence=MAX_SEQUENCE))).last_sequence == 1


@pytest.mark.parametrize("producer_epoch", [-1, -(2**15)])
def test_producer_epoch_out_of_range(producer_epoch: int) -> None:
    """Kafka's code for an epoch older than the one it knows."""
    assert refusal(batch(producer_epoch=producer_epoch)) is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("producer_id", [-2, -(2**63)])
def test_producer_id_out_of_range(producer_id: int) -> None:
    """Kafka takes any negative number for none."""
    assert refusal(batch(producer_id=producer_id)) is INVALID_RECORD


def test_transactional_batch_without_a_producer() -> None:
    """Kafka lets it pass; nobody could ever end that transaction."""
    assert refusal(batch(attributes=0x10, producer_id=-1, producer_epoch=-1, base_sequence=-1)) is INVALID_RECORD
    assert checked(memoryview(batch(attributes=0x10))).is_transactional
