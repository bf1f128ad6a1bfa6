"""Which columns a topic takes, and what becomes of a record batch of them."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from klamm.pipeline.sink.columns import ANY_PARTITION, Columns, columns_of
from klamm.pipeline.sink.problems import WrongColumns

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


STRING, BINARY, INT, BIGINT = StringType(), BinaryType(), IntegerType(), LongType()


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def pairs(**fields: DataType) -> ArrayType:
    return ArrayType(schema(**fields), containsNull=False)


NAMED = pairs(key=STRING, value=BINARY)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (schema(value=STRING), Columns("t", False, False, False)),
        (schema(key=BINARY, value=BINARY, partition=INT), Columns("t", True, True, False)),
        (schema(value=STRING, headers=NAMED), Columns("t", False, False, True)),
        (schema(value=STRING, of_the_user=MapType(STRING, BIGINT)), Columns("t", False, False, False)),
    ],
)
def test_columns_are_found_by_their_names(rows: StructType, expected: Columns) -> None:
    assert columns_of(rows, "t") == expected


def test_the_option_topic_wins_over_the_column() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": [None, "other"], "value": ["a", "b"]})
    chosen = columns_of(schema(topic=STRING, value=STRING), "t")
    assert [topic for topic, _ in zip(chosen.records(rows).topics, range(2), strict=False)] == ["t", "t"]


@pytest.mark.parametrize(
    "rows",
    [schema(value=INT, topic=STRING), schema(key=INT, value=STRING), schema(value=STRING, partition=BIGINT)],
)
def test_a_column_of_another_type_is_refused_with_its_name(rows: StructType) -> None:
    with pytest.raises(WrongColumns, match=r"The column (value|key|partition) is of type (int|bigint); it has to be "):
        columns_of(rows, "t")


@pytest.mark.parametrize("kind", [ArrayType(STRING), MapType(STRING, BINARY), pairs(name=STRING, value=BINARY)])
def test_headers_have_one_type(kind: DataType) -> None:
    with pytest.raises(WrongColumns, match=r"has to be array<struct<key:string,value:binary>>"):
        columns_of(schema(value=STRING, headers=kind), "t")


def test_without_a_value_or_a_topic_nothing_can_be_written() -> None:
    with pytest.raises(WrongColumns, match=r"no column named value.*there are: key, values"):
        columns_of(schema(key=STRING, values=STRING), "t")
    with pytest.raises(WrongColumns, match="option topic, or a column named topic"):
        columns_of(schema(value=STRING), None)
    with pytest.raises(WrongColumns, match="The column topic is of type binary"):
        columns_of(schema(value=STRING, topic=BINARY), None)


def test_strings_are_written_as_utf_8_and_nulls_stay_nulls() -> None:
    rows = pa.RecordBatch.from_pydict({"key": ["ä", None], "value": [None, "€"]})
    made = columns_of(schema(key=STRING, value=STRING), "t").records(rows)
    assert (made.keys, made.values, made.headers) == (["ä".encode(), None], [None, "€".encode()], None)


def test_large_types_and_slices_are_read_as_well() -> None:
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["a", "b", "c"], pa.large_string()), pa.array([[("x", b"1")], [], [("y", None)]], HEADERS)],
        ["value", "headers"],
    ).slice(1)
    made = columns_of(schema(value=STRING, headers=NAMED), "t").records(rows)
    assert made.values == [b"b", b"c"]
    assert made.headers == [[], [("y", None)]]


def test_a_null_partition_is_chosen_by_the_producer_and_a_negative_one_is_refused() -> None:
    columns = columns_of(schema(value=STRING, partition=INT), "t")
    values = pa.array(["a", "b"])

    def made(*partitions: int | None) -> list[int]:
        rows = [values, pa.array(partitions, pa.int32())]
        return list(columns.records(pa.RecordBatch.from_arrays(rows, ["value", "partition"])).partitions)

    assert made(3, None) == [3, ANY_PARTITION]
    with pytest.raises(WrongColumns, match="holds -1"):
        made(0, -1)


def test_a_null_topic_and_a_nameless_header_are_refused() -> None:
    rows = pa.RecordBatch.from_pydict({"topic": ["t", None], "value": ["a", "b"]})
    with pytest.raises(WrongColumns, match="topic is null in some row"):
        columns_of(schema(topic=STRING, value=STRING), None).records(rows)
    nameless = pa.RecordBatch.from_arrays([pa.array(["a"]), pa.array([[(None, b"1")]], HEADERS)], ["value", "headers"])
    with pytest.raises(WrongColumns, match="A header has no name"):
        columns_of(schema(value=STRING, headers=NAMED), "t").records(nameless)
