"""Record batches that lie: in their header, in their records, in what they claim to be when decompressed.

Every record is looked at, whatever the topic, unless it does without (`klamm.validate.records`): then a compacted one
still reads them all. So most cases are told to both kinds. What was refused left no trace: the log ends where it ended.
"""

import gzip
from struct import pack

import pytest

from klamm.errors import ErrorCode
from klamm.records.compression import Codec, compressed
from tests.hostile.batches import CODECS, NOW_MS, batch_of, one_record, timeless
from tests.hostile.raw import Raw
from tests.hostile.target import NAMED, Target, fetch, produce
from tests.records.made import changed, with_body

CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
INT32_MAX = 2**31 - 1


@pytest.fixture
def plain(target: Target, topic: str) -> str:
    target.create_topic(topic)
    return topic


@pytest.fixture
def strict(target: Target, topic: str) -> str:
    """A topic that decompresses and reads every record, because each needs a key."""
    name = f"{topic}-strict"[-249:]
    target.create_topic(name, cleanup_policy="compact")
    return name


def refusal(target: Target, topic: str, records: bytes | bytearray) -> int:
    """The error a producer gets; nothing was appended, and a right batch still is."""
    with target.connect() as client:
        end = _end(client, topic)
        (answer,) = client.ask(produce(topic, records), NAMED).responses[0].partition_responses
        assert _end(client, topic) == end + (not answer.error_code)
        client.ask(produce(topic, batch_of(b"after")), NAMED)
        assert _end(client, topic) == end + 1 + (not answer.error_code)
        code: int = answer.error_code
        return code


def _end(client: Raw, topic: str) -> int:
    end: int = client.ask(fetch(topic, max_bytes=0), NAMED).responses[0].partitions[0].high_watermark
    return end


def honest(**changes: int) -> bytearray:
    """A right batch of one record, with lies in its header."""
    return changed(batch_of(b"value"), **changes)


# Headers.


@pytest.mark.parametrize(
    "records, code",
    [
        (b"", INVALID),
        (b"\0" * 12, INVALID),
        (bytes(batch_of(b"x"))[:60], INVALID),
        (bytes(batch_of(b"x"))[:-1], INVALID),
        (bytes(batch_of(b"x")) + b"x", INVALID),
        (b"\xee" * 200, CORRUPT),
        (bytes(200), CORRUPT),
        (bytes(batch_of(b"x")) * 2, INVALID),
    ],
    ids=["nothing", "zeros", "a header cut", "a byte less", "a byte more", "noise", "many zeros", "two batches"],
)
def test_bytes_that_are_not_exactly_one_batch(target: Target, plain: str, records: bytes, code: int) -> None:
    """TRAPS 19."""
    assert refusal(target, plain, records) == code


@pytest.mark.parametrize(
    "lie, code",
    [
        ({"magic": 0}, INVALID),
        ({"magic": 1}, INVALID),
        ({"magic": 3}, CORRUPT),
        ({"magic": -1}, CORRUPT),
        ({"crc": 1}, CORRUPT),
        ({"length": 0}, CORRUPT),
        ({"length": -1}, CORRUPT),
        ({"length": INT32_MAX}, INVALID),
        ({"base_offset": 5}, INVALID),
        ({"base_offset": -1}, INVALID),
        ({"count": 0, "last_offset_delta": -1}, INVALID),
        ({"count": 0}, INVALID),
        ({"count": -1}, INVALID),
        ({"count": 2}, INVALID),
        ({"count": INT32_MAX, "last_offset_delta": INT32_MAX - 1}, INVALID),
        ({"last_offset_delta": 5}, INVALID),
        ({"last_offset_delta": -1}, INVALID),
        ({"last_offset_delta": INT32_MAX}, INVALID),
        ({"attributes": 0x20}, INVALID),
        ({"attributes": 0x40}, INVALID),
        ({"attributes": 0x08}, ErrorCode.INVALID_TIMESTAMP),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 7}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"max_timestamp": 2**63 - 1}, ErrorCode.INVALID_TIMESTAMP),
        ({"base_timestamp": -(2**63), "max_timestamp": -(2**63)}, ErrorCode.INVALID_TIMESTAMP),
        ({"producer_id": 7, "producer_epoch": 0, "base_sequence": -1}, INVALID),
        ({"producer_id": 7, "producer_epoch": -1, "base_sequence": 0}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"producer_id": 7, "producer_epoch": -32768, "base_sequence": 0}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"producer_id": -(2**63)}, INVALID),
    ],
    ids=str,
)
def test_a_header_that_lies(target: Target, plain: str, lie: dict[str, int], code: int) -> None:
    if lie.get("max_timestamp", 0) > 0:
        lie = {"base_timestamp": 2**63 - 1, **lie}
    assert refusal(target, plain, honest(**lie)) == code


@pytest.mark.parametrize("magic", [0, 1])
def test_formats_of_before_2017_nested_or_not(target: Target, plain: str, magic: int) -> None:
    def message(value: bytes, attributes: int = 0) -> bytes:
        timestamp = pack(">q", 1) if magic else b""
        content = pack(">bb", magic, attributes) + timestamp + pack(">ii", -1, len(value)) + value
        return pack(">qiI", 0, len(content) + 4, 0) + content

    assert refusal(target, plain, message(b"value")) == INVALID
    nested = message(gzip.compress(message(message(b"deep") * 3)), attributes=1)
    assert refusal(target, plain, nested) == INVALID


def test_a_batch_larger_than_the_topic_allows(target: Target, plain: str) -> None:
    assert refusal(target, plain, batch_of(bytes(1_048_588))) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_record_from_far_in_the_future_is_refused_by_name(target: Target, plain: str) -> None:
    future = NOW_MS + 100 * 24 * 3_600_000
    with target.connect() as client:
        response = client.ask(produce(plain, batch_of(b"now", b"then", timestamp=future)), NAMED)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [0, 1]


# Producers.


def sequenced(sequence: int, *, count: int = 1, epoch: int = 0, producer: int = 99) -> bytearray:
    return changed(batch_of(*[b"x"] * count), producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def test_sequences_wrap_after_the_largest(target: Target, plain: str) -> None:
    """TRAPS 23."""
    with target.connect() as client:
        for sequence, count in ((INT32_MAX - 2, 2), (INT32_MAX, 3), (2, 1)):
            answer = client.ask(produce(plain, sequenced(sequence, count=count)), NAMED)
            assert answer.responses[0].partition_responses[0].error_code == 0, sequence
        assert _end(client, plain) == 6


def test_sequences_out_of_order_and_epochs_gone_by_are_refused(target: Target, plain: str) -> None:
    assert refusal(target, plain, sequenced(0, epoch=5)) == 0
    assert refusal(target, plain, sequenced(2, epoch=5)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(target, plain, sequenced(INT32_MAX, epoch=5)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(target, plain, sequenced(1, epoch=4)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(target, plain, sequenced(7, epoch=6)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(target, plain, sequenced(0, epoch=32767, producer=2**63 - 1)) == 0


def test_a_transactional_batch_is_refused_while_there_are_no_transactions(target: Target, plain: str) -> None:
    """Appended, it could never be committed: readers of committed records would wait for it for ever."""
    transactional = changed(batch_of(b"x"), attributes=0x10, producer_id=5, producer_epoch=0, base_sequence=0)
    assert refusal(target, plain, transactional) != 0


# Records.


LIES: dict[str, bytes] = {
    "length past the end": b"\xfe\x01" + one_record()[1:],
    "length negative": b"\x01" + one_record()[1:],
    "length of ten bytes": b"\xff" * 9 + b"\x01" + one_record(),
    "length too small": b"\x02" + one_record()[1:],
    "key past the end": bytes([20, 0, 0, 0, 0xFE, 0x01]) + b"kkk" + bytes([1, 0]),
    "key of two gigabytes": bytes([20, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 1, 0]),
    "value past the end": bytes([14, 0, 0, 0, 1, 0x40, 0, 0]),
    "headers without end": bytes([20, 0, 0, 0, 1, 1, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F]),
    "headers fewer than none": bytes([12, 0, 0, 0, 1, 1, 1]),
    "header without a name": bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]),
    "header past the end": bytes([16, 0, 0, 0, 1, 1, 2, 0x7E, 1]),
    "offset delta wrong": one_record(offset_delta=1),
    "offset delta negative": one_record(offset_delta=-1),
    "offset delta of ten bytes": bytes([32, 0, 0]) + b"\xff" * 9 + b"\x01" + bytes([1, 1, 0]),
    "bytes after the last record": one_record() + b"\0",
    "another record after the last": one_record() * 2,
    "all zeros": bytes(200),
    "all ones": b"\xff" * 200,
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD], ids=lambda codec: codec.name)
def test_records_that_lie_are_refused_where_records_are_read(
    target: Target, strict: str, lie: str, codec: Codec
) -> None:
    assert refusal(target, strict, timeless(compressed(codec, LIES[lie]), codec)) == INVALID


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4], ids=lambda codec: codec.name)
def test_records_that_lie_are_refused_by_every_topic(target: Target, plain: str, lie: str, codec: Codec) -> None:
    assert refusal(target, plain, timeless(compressed(codec, LIES[lie]), codec)) == INVALID


@pytest.mark.parametrize("lie", LIES)
def test_records_that_lie_harm_no_topic_that_does_not_read_them(target: Target, topic: str, lie: str) -> None:
    """They may hurt who reads them, not us."""
    target.create_topic(topic, klamm_validate_records="false")
    with target.connect() as client:
        client.ask(produce(topic, timeless(LIES[lie])), NAMED)
        client.ask(produce(topic, timeless(compressed(Codec.LZ4, LIES[lie]), Codec.LZ4)), NAMED)
        found = client.ask(fetch(topic), NAMED).responses[0].partitions[0]
        assert found.error_code == 0


def test_timestamps_that_overflow_are_refused_where_records_are_read(target: Target, strict: str) -> None:
    body = one_record(timestamp_delta=2**63 - 1)
    lie = with_body(body, base_timestamp=NOW_MS, max_timestamp=NOW_MS)
    assert refusal(target, strict, lie) in (ErrorCode.INVALID_TIMESTAMP, INVALID)


def test_a_compacted_topic_refuses_records_without_a_key(target: Target, topic: str) -> None:
    """TRAPS 22."""
    target.create_topic(topic, cleanup_policy="compact")
    with target.connect() as client:
        response = client.ask(produce(topic, timeless(one_record(key=None))), NAMED)
    (answer,) = response.responses[0].partition_responses
    assert answer.error_code == INVALID
    assert [each.batch_index for each in answer.record_errors] == [0]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_compressed_stream_that_is_corrupt_is_refused_where_records_are_read(
    target: Target, topic: str, codec: Codec
) -> None:
    target.create_topic(topic, compression_type="uncompressed")
    good = compressed(codec, one_record(value=bytes(1000)))
    for bad in (b"", b"\0" * 20, b"\xff" * 100, good[:-5], good[: len(good) // 2], good[:8] + b"\xff" * 40):
        assert refusal(target, topic, timeless(bad, codec)) == INVALID
    other = Codec.GZIP if codec != Codec.GZIP else Codec.ZSTD
    assert refusal(target, topic, timeless(compressed(other, one_record()), codec)) == INVALID
