"""What Fetch responses hold now and then: transactions, old formats, damage, huge values, thousands of tiny batches."""

import random
from struct import pack_into

import pyarrow as pa
import pytest

from klamm.errors import ErrorCode
from klamm.pipeline.decoding import Decoder, gathering
from klamm.pipeline.decoding import decoder as decoder_module
from klamm.records.batch import LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, InvalidBatch
from klamm.records.builder import BatchBuilder, rebuilt
from klamm.records.compression import Codec, compressed
from klamm.records.control import end_transaction_marker
from klamm.records.record import encode_record, records_of
from tests.pipeline.test_decoding import EVERYTHING, decoded, twin
from tests.records.made import NOON, batch, changed, with_body


def refusal(response: bytes | bytearray) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as refused:
        decoded(bytes(response))
    return refused.value


def transactional(offset: int, producer_id: int, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec, offset, None, producer_id, 0, 0, attributes=TRANSACTIONAL_BIT)
    builder.append(b"key", b"of %d" % producer_id, NOON)
    return bytes(builder.build())


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return bytes(
        end_transaction_marker(producer_id, 0, commit=commit, coordinator_epoch=0, timestamp=NOON, base_offset=offset)
    )


def test_of_aborted_transactions_nothing_is_seen() -> None:
    """Producer 1 aborts, then commits; producer 2 commits in between; one batch belongs to no transaction."""
    response = b"".join(
        (
            transactional(0, 1),
            transactional(1, 2, Codec.LZ4),
            transactional(2, 1),
            changed(batch(records=1), base_offset=3, producer_id=1),
            marker(4, 2, commit=True),
            marker(5, 1, commit=False),
            transactional(6, 1),
            marker(7, 1, commit=True),
            transactional(8, 1),
            marker(9, 1, commit=False),
        )
    )
    found, next_offset = decoded(response, aborted=[(1, 8), (1, 0)])
    assert found == twin(response, hidden=[0, 2, 8])
    assert [row["offset"] for row in found] == [1, 3, 6]
    assert next_offset == 10
    assert [row["offset"] for row in decoded(response)[0]] == [0, 1, 2, 3, 6, 8], "uncommitted is read as it stands"


def test_a_transaction_that_began_before_the_response_is_hidden_too() -> None:
    response = transactional(50, 1) + marker(51, 1, commit=False) + transactional(52, 1)
    assert [row["offset"] for row in decoded(response, 50, aborted=[(1, 7)])[0]] == [52]


def test_a_gap_up_to_the_end_is_not_fetched_again() -> None:
    response = bytes(changed(batch(), base_offset=10)) + bytes(changed(batch(), base_offset=90))
    found, next_offset = decoded(response, 11, 50)
    assert [row["offset"] for row in found] == [11, 12]
    assert next_offset == 90


def test_a_batch_that_compaction_emptied_only_moves_on() -> None:
    response = bytes(rebuilt(changed(batch(), base_offset=10), [], Codec.NONE))
    assert decoded(response) == ([], 13)


def test_a_torn_first_batch_gives_nothing() -> None:
    assert decoded(bytes(batch())[:-1], 7) == ([], 7)


def test_append_time_is_the_batchs() -> None:
    built = changed(batch(Codec.ZSTD), attributes=LOG_APPEND_TIME_BIT | Codec.ZSTD, max_timestamp=NOON + 77)
    rows, _ = decoded(bytes(batch()) + bytes(changed(built, base_offset=3)))
    assert [(row["timestamp"], row["timestampType"]) for row in rows] == [
        (NOON, 0),
        (NOON + 1, 0),
        (NOON + 2, 0),
    ] + 3 * [(NOON + 77, 1)]


def test_a_timestamp_beyond_sparks_is_null() -> None:
    rows, _ = decoded(bytes(changed(batch(records=1), base_timestamp=2**61)))
    assert [row["timestamp"] for row in rows] == [None]


def test_timestamps_that_overflow_are_refused() -> None:
    record = bytearray()
    encode_record(record, 0, 2**62, None, None)
    assert refusal(with_body(bytes(record), base_timestamp=2**62)).code is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_named(magic: int) -> None:
    old = bytearray(34)
    pack_into(">qiIbb", old, 0, 5, 22, 0, magic, 0)
    for response in (old, old + bytes(100), bytes(batch()) + bytes(old)):
        error = refusal(response)
        assert error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        assert f"orders-3: the messages at offset 5 are in format {magic}" in str(error)


@pytest.mark.parametrize(
    "damage",
    [
        {"crc": 1},
        {"magic": 3},
        {"length": 48},
        {"length": -1},
        {"base_offset": -1},
        {"base_offset": 2**63 - 3},
        {"last_offset_delta": -1},
    ],
)
def test_damaged_headers(damage: dict[str, int]) -> None:
    assert refusal(changed(batch(), **damage)).code is ErrorCode.CORRUPT_MESSAGE


def test_offsets_that_go_back_are_damage() -> None:
    """The base offset stands outside the CRC, so this is all that shows a wrong one."""
    assert refusal(bytes(batch()) + bytes(batch())).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("count", [0, -1, 2, 4, 2**31 - 1])
def test_a_wrong_count(count: int) -> None:
    assert refusal(changed(batch(), count=count)).code is ErrorCode.INVALID_RECORD


def test_codecs_that_do_not_exist_or_do_not_fit() -> None:
    assert refusal(changed(batch(), attributes=5)).code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refusal(changed(batch(), attributes=Codec.LZ4)).code is ErrorCode.INVALID_RECORD


def test_a_batch_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LARGEST_BATCH_BYTES", 10_000)
    bomb = compressed(Codec.GZIP, bytes(10_001))
    assert refusal(with_body(bomb, Codec.GZIP)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", Codec)
def test_thousands_of_tiny_batches_become_few_large_ones(codec: Codec) -> None:
    response, offset = bytearray(), 0
    chance = random.Random(1)
    while offset < 3000:
        builder = BatchBuilder(codec if chance.random() < 0.9 else Codec.NONE, offset)
        for _ in range(chance.choice((1, 1, 2, 60))):
            builder.append(None, chance.randbytes(chance.choice((0, 5, 62, 63, 64, 300))), NOON + offset)
        response += builder.build()
        offset = builder.last_offset + 1
    found, _ = Decoder("orders", 3).decode(memoryview(response), 0, EVERYTHING)
    assert len(found) <= 2
    assert decoded(bytes(response))[0] == twin(bytes(response))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_large_batches_are_cut_by_rows_and_by_bytes(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_module, "MOST_BYTES", 20_000)
    builder = BatchBuilder(codec)
    for index in range(500):
        builder.append(b"k", bytes(30_000 if index == 200 else index % 97), NOON)
    response = bytes(builder.build())
    found, _ = Decoder("orders", 3).decode(memoryview(response), 0, EVERYTHING)
    assert all(batch.num_rows == 1 or sum(map(len, batch["value"].to_pylist())) <= 20_000 for batch in found)
    assert decoded(response)[0] == twin(response)
    monkeypatch.setattr(decoder_module, "MOST_ROWS", 100)
    found, _ = Decoder("orders", 3).decode(memoryview(response), 0, EVERYTHING)
    assert max(batch.num_rows for batch in found) <= 100
    assert decoded(response)[0] == twin(response)


def test_a_huge_value() -> None:
    builder = BatchBuilder()
    value = random.Random(2).randbytes(2**20) * 65
    builder.append(b"small", b"before", NOON)
    builder.append(b"huge", value, NOON)
    builder.append(b"small", b"after", NOON)
    found, _ = Decoder("orders", 3).decode(memoryview(builder.build()), 0, EVERYTHING)
    assert pa.Table.from_batches(found)["value"].to_pylist() == [b"before", value, b"after"]


def test_the_rows_outlive_the_response() -> None:
    response = bytearray(batch())
    found, _ = Decoder("orders", 3).decode(memoryview(response), 0, EVERYTHING)
    expected = [record.value for record in records_of(bytes(response))]
    response[:] = bytes(len(response))
    assert found[0]["value"].to_pylist() == expected


def test_many_headers_in_one_record() -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v", NOON, [("name", None)] * 700)
    builder.append(b"k", b"v", NOON, [("other", b"")])
    response = bytes(builder.build())
    assert decoded(response)[0] == twin(response)
