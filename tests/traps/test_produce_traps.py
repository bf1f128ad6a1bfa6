"""Traps 18 to 24: what a broker makes of a producer's batches."""

import struct
import time
from random import Random
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.records.batch import read_header, set_crc
from klamm.records.compression import Codec
from klamm.records.record import records_of
from klamm.wire.messages.metadata import MetadataRequest
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import (
    LATEST,
    batch_of,
    create,
    fetch,
    metadata_of,
    new_producer_id,
    offset_at,
    produce,
    produce_request,
    values_in,
)
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS

DAY_MS = 86_400_000
ATTRIBUTES, LAST_OFFSET_DELTA, COUNT = slice(21, 23), slice(23, 27), slice(57, 61)
LAST_SEQUENCE = 2**31 - 1


def test_trap_18_acks_0_is_never_answered(raw: Raw, topic: str) -> None:
    create(raw, topic)
    raw.send("Produce", 9, produce_request(topic, batch_of(b"quiet"), acks=0))
    answer = raw.call("Metadata", 12, MetadataRequest(topics=[]))
    assert len(answer.brokers) == 1, "the next answer is the next request's"
    assert values_in(raw, topic) == [b"quiet"]


def test_trap_18_acks_0_and_an_error_closes_the_connection(raw: Raw) -> None:
    """It is the only way to tell the producer that something is wrong."""
    raw.send("Produce", 9, produce_request("there-is-no-such-topic", batch_of(b"lost"), acks=0))
    assert raw.is_closed_by_broker()


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_trap_18_no_other_acks_exist(raw: Raw, topic: str, acks: int) -> None:
    create(raw, topic)
    assert produce(raw, topic, batch_of(b"x"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert offset_at(raw, topic, LATEST).offset == 0


def test_trap_19_the_batch_is_stored_and_served_as_it_was_sent(raw: Raw, topic: str) -> None:
    """Only base offset and leader epoch are the broker's, and the CRC does not cover them."""
    create(raw, topic)
    produce(raw, topic, batch_of(b"first"))
    for codec in Codec:
        sent = bytes(batch_of(b"one", None, b"three" * 100, codec=codec, leader_epoch=77))
        stored = produce(raw, topic, sent)
        assert stored.error_code == ErrorCode.NONE, stored
        served = bytes(fetch(raw, topic, stored.base_offset).records or b"")
        assert served[8:12] == sent[8:12] and served[16:] == sent[16:], codec
        header = read_header(served)
        epoch = metadata_of(raw, topic).partitions[0].leader_epoch
        assert (header.base_offset, header.leader_epoch) == (stored.base_offset, epoch)


def _two_batches() -> bytes:
    return bytes(batch_of(b"one") + batch_of(b"two"))


def _control_batch() -> bytes:
    return _changed(batch_of(struct.pack(">hi", 0, 0), key=struct.pack(">hh", 0, 1), attributes=0x20))


def _wrong_crc() -> bytes:
    batch = batch_of(b"some value")
    batch[-3] ^= 1
    return bytes(batch)


def _old_format() -> bytes:
    batch = batch_of(b"some value")
    batch[16] = 1
    return bytes(batch)


def _changed(batch: bytearray, **fields: bytes) -> bytes:
    places = {"attributes": ATTRIBUTES, "last_offset_delta": LAST_OFFSET_DELTA, "count": COUNT}
    for name, content in fields.items():
        batch[places[name]] = content
    set_crc(memoryview(batch))
    return bytes(batch)


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (_two_batches(), ErrorCode.INVALID_RECORD),
        (_control_batch(), ErrorCode.INVALID_RECORD),
        (bytes(batch_of(b"a", base_offset=5)), ErrorCode.INVALID_RECORD),
        (_old_format(), ErrorCode.INVALID_RECORD),
        (_wrong_crc(), ErrorCode.CORRUPT_MESSAGE),
        (_changed(batch_of(b"a", b"b"), last_offset_delta=struct.pack(">i", 5)), ErrorCode.INVALID_RECORD),
        (_changed(batch_of(b"a", b"b"), count=struct.pack(">i", 3)), ErrorCode.INVALID_RECORD),
        (_changed(batch_of(b"a", b"b"), count=struct.pack(">i", 1)), ErrorCode.INVALID_RECORD),
    ],
    ids=["two", "control", "base-offset", "old-format", "crc", "delta", "count-high", "count-low"],
)
def test_trap_19_exactly_one_sound_batch_a_partition(raw: Raw, topic: str, records: bytes, code: ErrorCode) -> None:
    create(raw, topic)
    assert produce(raw, topic, records).error_code == code
    assert offset_at(raw, topic, LATEST).offset == 0, "and nothing of it is stored"
    assert produce(raw, topic, batch_of(b"sound")).base_offset == 0


def test_trap_20_create_time_is_the_producers(raw: Raw, topic: str) -> None:
    create(raw, topic)
    assert produce(raw, topic, batch_of(b"x")).log_append_time_ms == -1
    assert read_header(bytes(fetch(raw, topic, 0).records or b"")).max_timestamp == FIRST_TIMESTAMP_MS


@pytest.mark.parametrize("codec", list(Codec))
def test_trap_20_log_append_time_is_the_brokers(raw: Raw, topic: str, codec: Codec) -> None:
    """Bit 3 of the attributes, the largest timestamp, a new CRC; and the producer is told."""
    create(raw, topic, config={"message.timestamp.type": "LogAppendTime"})
    before_ms = int(time.time() * 1000)
    told = produce(raw, topic, batch_of(b"x", b"y", codec=codec)).log_append_time_ms
    assert before_ms <= told <= int(time.time() * 1000)
    served = bytes(fetch(raw, topic, 0).records or b"")
    header = read_header(served)
    assert header.attributes & 0x08 and header.max_timestamp == told
    again = bytearray(served)
    set_crc(memoryview(again))
    assert bytes(again) == served, "the CRC is right"
    assert [record.timestamp for record in records_of(served)] == [told, told]
    assert offset_at(raw, topic, told).offset == 0


@pytest.mark.parametrize(
    ("config", "timestamp"),
    [
        ({"message.timestamp.before.max.ms": "1000"}, int(time.time() * 1000) - DAY_MS),
        ({"message.timestamp.after.max.ms": "1000"}, int(time.time() * 1000) + DAY_MS),
        ({}, int(time.time() * 1000) + DAY_MS),
    ],
    ids=["too-old", "too-new", "too-new-by-default"],
)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_trap_20_a_timestamp_out_of_range_is_named_by_its_record(
    raw: Raw, topic: str, config: dict[str, str], timestamp: int, codec: Codec
) -> None:
    create(raw, topic, config=config)
    refused = produce(raw, topic, batch_of(b"x", b"y", timestamp=timestamp, codec=codec))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert {error.batch_index for error in refused.record_errors} == {0, 1}
    assert offset_at(raw, topic, LATEST).offset == 0
    assert produce(raw, topic, batch_of(b"x"), version=7).error_code == (
        ErrorCode.INVALID_TIMESTAMP if "message.timestamp.before.max.ms" in config else ErrorCode.NONE
    ), "a version without record errors has the code alone"


def test_trap_21_a_batch_above_max_message_bytes_is_too_large(raw: Raw, topic: str) -> None:
    create(raw, topic, config={"max.message.bytes": "10000"})
    noise = Random(1).randbytes(20_000)
    assert produce(raw, topic, batch_of(noise)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    fits = batch_of(noise[: 10_000 - len(batch_of(b"")) - 4])
    assert len(fits) <= 10_000
    assert produce(raw, topic, fits).error_code == ErrorCode.NONE


def test_trap_21_the_default_limit_is_a_little_over_a_mebibyte(raw: Raw, topic: str) -> None:
    create(raw, topic)
    overhead = len(batch_of(bytes(1_000_000))) - 1_000_000
    assert produce(raw, topic, batch_of(bytes(1_048_588 - overhead))).error_code == ErrorCode.NONE
    assert produce(raw, topic, batch_of(bytes(1_048_589 - overhead))).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_trap_21_the_compressed_size_counts(raw: Raw, topic: str) -> None:
    create(raw, topic, config={"max.message.bytes": "10000"})
    zeros = bytes(500_000)
    assert produce(raw, topic, batch_of(zeros, codec=Codec.ZSTD)).error_code == ErrorCode.NONE
    assert values_in(raw, topic) == [zeros]


def test_trap_21_a_batch_above_segment_bytes_is_no_longer_a_matter_of_splitting(raw: Raw, topic: str) -> None:
    create(raw, topic, config={"max.message.bytes": "5000000", "segment.bytes": str(1024 * 1024)})
    assert produce(raw, topic, batch_of(bytes(1_100_000))).error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert produce(raw, topic, batch_of(bytes(900_000))).error_code == ErrorCode.NONE


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_trap_22_a_compacted_topic_wants_keys(raw: Raw, topic: str, codec: Codec) -> None:
    """The whole batch is refused, and the records without a key are named."""
    create(raw, topic, config={"cleanup.policy": "compact"})
    refused = produce(raw, topic, batch_of(b"x", b"y", key=None, codec=codec))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == [0, 1]
    assert offset_at(raw, topic, LATEST).offset == 0
    assert produce(raw, topic, batch_of(b"x", key=b"", codec=codec)).error_code == ErrorCode.NONE, "an empty key is one"


def test_trap_23_a_duplicate_is_acknowledged_with_its_first_offset(raw: Raw, topic: str) -> None:
    """Any of the last five batches, as often as it is sent."""
    create(raw, topic)
    producer = new_producer_id(raw)
    batches = [_numbered(producer, first, 3) for first in range(0, 18, 3)]
    offsets = [produce(raw, topic, batch).base_offset for batch in batches]
    assert offsets == [0, 3, 6, 9, 12, 15]
    for _ in range(2):
        for batch, offset in zip(batches[1:], offsets[1:], strict=True):
            again = produce(raw, topic, batch)
            assert (again.error_code, again.base_offset) == (ErrorCode.NONE, offset)
    assert offset_at(raw, topic, LATEST).offset == 18, "and none is stored twice"
    assert produce(raw, topic, batches[0]).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
        "the sixth is forgotten"
    )


def test_trap_23_a_gap_is_out_of_order(raw: Raw, topic: str) -> None:
    create(raw, topic)
    producer = new_producer_id(raw)
    produce(raw, topic, _numbered(producer, 0, 3))
    assert produce(raw, topic, _numbered(producer, 4, 1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(raw, topic, _numbered(producer, 2, 2)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(raw, topic, _numbered(producer, 3, 1)).base_offset == 3, "the next one still goes on"


def test_trap_23_a_new_epoch_begins_at_zero_and_fences_the_old(raw: Raw, topic: str) -> None:
    create(raw, topic)
    producer = new_producer_id(raw)
    produce(raw, topic, _numbered(producer, 0, 3))
    refused = produce(raw, topic, _numbered(producer, 3, 1, epoch=1))
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(raw, topic, _numbered(producer, 0, 1, epoch=1)).base_offset == 3
    assert produce(raw, topic, _numbered(producer, 3, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_trap_23_an_unknown_producer_may_begin_anywhere_and_numbers_wrap(raw: Raw, topic: str) -> None:
    """After 2147483647 comes 0, also in the middle of a batch."""
    create(raw, topic)
    producer = new_producer_id(raw)
    assert produce(raw, topic, _numbered(producer, LAST_SEQUENCE - 2, 2)).base_offset == 0
    around = _numbered(producer, LAST_SEQUENCE, 4)
    assert produce(raw, topic, around).base_offset == 2
    assert produce(raw, topic, _numbered(producer, 3, 1)).base_offset == 6
    assert produce(raw, topic, around).base_offset == 2, "still known as a duplicate"


@pytest.mark.parametrize("stop", ["stop", "kill9"])
def test_trap_23_producers_are_known_after_a_restart(fresh_node: Node, stop: str) -> None:
    """The state is in the log and its snapshots; after kill -9 it is rebuilt from the batches.

    Kafka's snapshots hold a producer's last batch only, and forget a producer whose last record is a day old.
    """
    with Raw(fresh_node.port) as raw:
        create(raw, "kept")
        producer = new_producer_id(raw)
        for first in range(0, 10, 2):
            last = _numbered(producer, first, 2, timestamp=int(time.time() * 1000))
            assert produce(raw, "kept", last).error_code == ErrorCode.NONE
    getattr(fresh_node, stop)()
    fresh_node.restart()
    with Raw(fresh_node.port) as raw:
        wait_until(lambda: offset_at(raw, "kept", LATEST).error_code == 0, "the partition is back")
        again = produce(raw, "kept", last)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 8)
        assert produce(raw, "kept", _numbered(producer, 11, 1)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(raw, "kept", _numbered(producer, 10, 1)).base_offset == 10
        assert new_producer_id(raw) != producer, "an id is given once"


def test_trap_24_min_insync_replicas_counts_at_most_the_replicas_there_are(raw: Raw, topic: str) -> None:
    """So with one replica, which is always in sync, NOT_ENOUGH_REPLICAS cannot come (KIP-966)."""
    create(raw, topic, config={"min.insync.replicas": "2"})
    assert produce(raw, topic, batch_of(b"all")).error_code == ErrorCode.NONE
    assert produce(raw, topic, batch_of(b"one"), acks=1).error_code == ErrorCode.NONE
    assert values_in(raw, topic) == [b"all", b"one"]


def test_trap_24_no_such_partition_is_told_from_no_such_topic_by_nobody(raw: Raw, topic: str) -> None:
    create(raw, topic)
    for name, partition in ((topic, 1), (topic, -1), ("there-is-no-such-topic", 0)):
        assert (
            produce(raw, name, batch_of(b"x"), partition=partition).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )


def _numbered(producer: int, first: int, count: int, epoch: int = 0, timestamp: int = FIRST_TIMESTAMP_MS) -> bytes:
    """`count` records of a producer, the first with sequence number `first`."""
    values = [b"%d" % ((first + n) % (LAST_SEQUENCE + 1)) for n in range(count)]
    fields: dict[str, Any] = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": first}
    return bytes(batch_of(*values, timestamp=timestamp, **fields))
