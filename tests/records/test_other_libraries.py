"""kafka-python, aiokafka and kio build what we read, and read what we build."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka.record import default_records as aio  # type: ignore[import-untyped]
from kafka.record import default_records as kafka_python  # type: ignore[import-untyped]
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch, RecordHeader
from kio.records.schema import Record as KioRecord
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from klamm.records.batch import checked, intact
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import Header, Record, records_of

from .made import NOON

RECORDS = [
    Record(0, NOON, b"key", b"value", (("trace", b"abc"), ("null", None), ("empty", b""))),
    Record(1, NOON + 1000, None, b"no key", ()),
    Record(2, NOON - 90_000, b"no value", None, (("ünï", "çödé".encode()),)),
    Record(3, NOON + 2000, b"", b"", ()),
    Record(4, NOON + 2000, b"long", b"0123456789" * 10_000, ()),
]

# kafka-python needs libraries for snappy and zstd that we do not install; aiokafka uses ours.
LIBRARIES = [
    *((kafka_python.DefaultRecordBatchBuilder, kafka_python.DefaultRecordBatch, codec) for codec in (0, 1, 3)),
    *((aio._DefaultRecordBatchBuilderPy, aio._DefaultRecordBatchPy, codec) for codec in range(5)),
    *((aio.DefaultRecordBatchBuilder, aio.DefaultRecordBatch, codec) for codec in range(5)),
]
IDS = [f"{batch.__module__.split('.')[0]}-{batch.__name__}-{Codec(codec).name}" for _, batch, codec in LIBRARIES]


def ours(codec: int) -> bytearray:
    builder = BatchBuilder(codec, producer_id=7, producer_epoch=2, base_sequence=40)
    for record in RECORDS:
        builder.append(record.key, record.value, record.timestamp, record.headers)
    return builder.build()


@pytest.mark.parametrize(("builder_class", "batch_class", "codec"), LIBRARIES, ids=IDS)
def test_we_read_theirs(builder_class: Any, batch_class: Any, codec: int) -> None:
    builder = builder_class(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
        batch_size=10**6,
    )
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    built = builder.build()
    header = checked(memoryview(built))
    assert header.codec == codec
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.base_timestamp, header.max_timestamp) == (NOON, NOON + 2000)
    assert list(records_of(built)) == RECORDS


@pytest.mark.parametrize(("builder_class", "batch_class", "codec"), LIBRARIES, ids=IDS)
def test_they_read_ours(builder_class: Any, batch_class: Any, codec: int) -> None:
    batch = batch_class(bytes(ours(codec)))
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 2, 40)
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(map(tuple, record.headers)))
        for record in batch
    ] == RECORDS


def test_uncompressed_batches_are_the_same_to_the_byte() -> None:
    builder = kafka_python.DefaultRecordBatchBuilder(2, 0, 0, 7, 2, 40, 10**6)
    for record in RECORDS:
        builder.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    theirs = builder.build()
    assert ours(0)[:12] + ours(0)[16:] == theirs[:12] + theirs[16:]  # Without the leader epoch: theirs is 0.


def moment(timestamp: int) -> TZAwareMicros:
    return TZAwareMicros.parse(datetime.fromtimestamp(timestamp / 1000, UTC))


def in_kio(headers: tuple[Header, ...]) -> tuple[RecordHeader, ...]:
    return tuple(RecordHeader(key=name.encode(), value=value) for name, value in headers)


KIO_RECORDS = tuple(
    KioRecord(
        attributes=i8(0),
        timestamp=moment(record.timestamp),
        offset=i64(record.offset),
        key=record.key,
        value=record.value,
        headers=in_kio(record.headers),
    )
    for record in RECORDS
)


def test_we_read_kios() -> None:
    out = io.BytesIO()
    new = NewRecordBatch(
        producer_id=i64(7), producer_epoch=i16(2), base_sequence=i32(40), records=KIO_RECORDS, attributes=i16(0)
    )
    write_new_batch(out, new)
    assert checked(memoryview(out.getvalue())).count == len(RECORDS)
    assert list(records_of(out.getvalue())) == RECORDS


def test_kio_reads_ours() -> None:
    built = ours(0)
    batch, size = read_batch(bytes(built), 0)
    header = intact(memoryview(built))
    assert size == header.size_bytes
    assert (batch.crc, batch.last_offset_delta, batch.base_timestamp) == (header.crc, 4, NOON)
    assert batch.records == KIO_RECORDS
