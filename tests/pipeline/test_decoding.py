"""Kafka's batches as Arrow's rows, compared with a twin that takes records out one by one."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.pipeline.decoding import Decoder, arrow_schema
from klamm.records.batch import CONTROL_BIT, HEADER_BYTES, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, InvalidBatch, batches
from klamm.records.builder import BatchBuilder, rebuilt
from klamm.records.compression import Codec
from klamm.records.record import Record, records_of
from tests.records.made import NOON, changed

EVERYTHING = 2**63 - 1


def rows(found: list[pa.RecordBatch]) -> list[dict[str, object]]:
    for batch in found:
        batch.validate(full=True)
    table = pa.Table.from_batches(found, schema=found[0].schema) if found else None
    if table is None:
        return []
    millis = table.column("timestamp").cast(pa.int64()).to_pylist()
    return [
        row | {"timestamp": None if micros is None else micros // 1000}
        for row, micros in zip(table.drop(["timestamp"]).to_pylist(), millis, strict=True)
    ]


def twin(response: bytes, start: int = 0, end: int = EVERYTHING, hidden: Sequence[int] = ()) -> list[dict[str, object]]:
    """What a beginner would write. `hidden` are the base offsets of batches that were aborted."""
    found: list[dict[str, object]] = []
    for position, batch in batches(response):
        if batch.is_control or batch.base_offset in hidden:
            continue
        if batch.count == 0:
            continue
        for record in records_of(memoryview(response)[position : position + batch.size_bytes]):
            if start <= record.offset < end:
                found.append(row(record, int(batch.log_append_time)))
    return found


def row(record: Record, timestamp_type: int) -> dict[str, object]:
    headers = [
        {"key": name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), "value": content}
        for name, content in record.headers
    ]
    return {
        "key": record.key,
        "value": record.value,
        "topic": "orders",
        "partition": 3,
        "offset": record.offset,
        "timestamp": record.timestamp if abs(record.timestamp) <= (2**63 - 1) // 1000 else None,
        "timestampType": timestamp_type,
        "headers": headers or None,
    }


def decoded(
    response: bytes,
    start: int = 0,
    end: int = EVERYTHING,
    aborted: Sequence[tuple[int, int]] = (),
    include_headers: bool = True,
) -> tuple[list[dict[str, object]], int]:
    found, next_offset = Decoder("orders", 3, include_headers).decode(memoryview(response), start, end, aborted)
    assert all(batch.schema.equals(arrow_schema(include_headers)) and batch.num_rows for batch in found)
    return rows(found), next_offset


contents = st.none() | st.binary(max_size=40) | st.binary(min_size=60, max_size=300)
names = st.text(max_size=5) | st.binary(max_size=5).map(lambda name: name.decode("utf-8", "surrogateescape"))
headers = st.lists(st.tuples(names, contents), max_size=3)
timestamps = st.integers(NOON, NOON + 10**6) | st.just(-1) | st.integers(-(2**62), 2**62)


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A slice of a log: batches of all kinds, with gaps between them and in them."""
    response, offset = bytearray(), draw(st.integers(0, 300) | st.integers(0, 2**50))
    same = draw(st.booleans())
    for _ in range(draw(st.integers(0, 4))):
        attributes = draw(st.sampled_from((0, 0, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT)))
        builder = BatchBuilder(draw(st.sampled_from(Codec)), offset, attributes=attributes, producer_id=4)
        for index in range(draw(st.integers(1, 5) | st.integers(1, 90))):
            if same:
                builder.append(b"key", b"value %5d" % index, NOON + index)
            else:
                builder.append(draw(contents), draw(contents), draw(timestamps), draw(headers), offset=offset)
            offset = builder.last_offset + 1 + (0 if same else draw(st.integers(0, 2) | st.integers(0, 20_000)))
        built = bytes(builder.build())
        if draw(st.integers(0, 9)) == 0:
            built = bytes(rebuilt(built, [], 0))
        response += built
        offset += draw(st.integers(0, 3))
    return bytes(response)


@settings(max_examples=60)
@given(responses(), st.booleans())
def test_the_rows_are_those_of_the_twin(response: bytes, include_headers: bool) -> None:
    found, next_offset = decoded(response, include_headers=include_headers)
    expected = twin(response)
    if not include_headers:
        for one in expected:
            del one["headers"]
    assert found == expected
    assert next_offset == max((batch.next_offset for _, batch in batches(response)), default=0)


@settings(max_examples=50)
@given(responses(), st.data())
def test_any_range_of_offsets(response: bytes, data: st.DataObject) -> None:
    known = [0] + [offset for _, batch in batches(response) for offset in (batch.base_offset, batch.next_offset)]
    near = st.sampled_from(known).flatmap(lambda offset: st.integers(max(0, offset - 3), offset + 3))
    start, end = data.draw(near), data.draw(near)
    found, next_offset = decoded(response, start, end)
    assert found == twin(response, start, end)
    assert next_offset >= start


@settings(max_examples=50)
@given(responses(), st.integers(0, 400))
def test_a_torn_last_batch_is_left_for_the_next_fetch(response: bytes, cut: int) -> None:
    torn = response[: max(0, len(response) - cut)]
    found, next_offset = decoded(torn)
    assert found == twin(torn)
    assert found + decoded(response, next_offset)[0] == twin(response)


@settings(max_examples=150)
@given(responses(), st.data())
def test_damage_is_refused_or_harmless(response: bytes, data: st.DataObject) -> None:
    """Whatever stands in the records of a batch with a right CRC: the twin's rows, or its refusal."""
    bad = bytearray(response)
    for position, batch in list(batches(response)):
        body = slice(position + HEADER_BYTES, position + batch.size_bytes)
        if batch.is_control or body.stop == body.start:
            continue
        for _ in range(data.draw(st.integers(0, 2))):
            place = data.draw(st.integers(body.start, body.stop - 1) | st.just(body.start))
            bad[place] = data.draw(st.sampled_from((0, 1, 2, 127, 128, 255)) | st.integers(0, 255))
        bad[position : body.stop] = changed(bad[position : body.stop])
    try:
        expected: list[dict[str, object]] | None = twin(bytes(bad))
    except InvalidBatch:
        expected = None
    try:
        found: list[dict[str, object]] | None = decoded(bytes(bad))[0]
    except InvalidBatch:
        found = None
    assert found == expected


def test_the_schema_is_the_one_that_pyspark_demands() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from pyspark.sql.pandas.types import to_arrow_schema

    columns = types.StructType()
    for name, kind in (("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "integer")):
        columns.add(name, kind)
    columns.add("offset", "long").add("timestamp", "timestamp").add("timestampType", "integer")
    assert to_arrow_schema(columns, timezone="UTC").equals(arrow_schema(False))
    columns.add("headers", types.ArrayType(types.StructType().add("key", "string").add("value", "binary")))
    assert to_arrow_schema(columns, timezone="UTC").equals(arrow_schema(True))
