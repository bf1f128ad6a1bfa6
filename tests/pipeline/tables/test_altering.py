"""Rows that do not fit are refused with lines of Python. These are run here, as they are said: then the rows fit."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from klamm.pipeline.tables import DoesNotFit, TableSink, Written, job, open_table
from klamm.pipeline.tables.fitting import ALTER
from tests.pipeline.tables.without_spark import rows_of, run, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = StructType().add("id", "string").add("amount", "long").add("shop", "string")
OLD = [("a", 1, "x"), ("b", 2, "y")]
TYPES = {"string": StringType(), "int": IntegerType(), "bigint": LongType(), "timestamp": TimestampType()}
TYPES |= {"decimal": DecimalType(12, 2), "array": ArrayType(LongType()), "binary": BinaryType()}
KINDS = pytest.mark.parametrize("kind", ["delta", "parquet"])


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "run", run)


def columns(text: str) -> StructType:
    """Spark's own parser takes Spark."""
    return StructType([StructField(name, TYPES[kind]) for name, kind in (each.split() for each in text.split(", "))])


def opened(path: Path, kind: str, spark: Any = None) -> TableSink:
    return open_table(spark or session(2), str(path), format=kind, key=("id",), application="app")


def lines_said(table: TableSink, rows: StructType) -> str:
    """What the refusal says in the end: the lines of Python, without their indentation."""
    with pytest.raises(DoesNotFit) as refused:
        table.new_columns(rows)
    _, _, said = str(refused.value).partition(f" {ALTER}\n\n")
    lines = said.splitlines()
    assert lines and all(line.startswith("    ") or not line for line in lines), str(refused.value)
    return "\n".join(line.removeprefix("    ") for line in lines)


def read(path: Path) -> dict[str, dict[str, Any]]:
    table = DeltaTable(path).to_pyarrow_table() if (path / "_delta_log").exists() else pq.read_table(path)
    return {row.pop("id"): row for row in table.to_pylist()}


@KINDS
@pytest.mark.parametrize(
    ("rows", "new", "old"),
    [
        ("id string, amount string, shop string", ("c", "3", "z"), {"amount": "1", "shop": "x"}),
        ("id string, amount decimal, shop string", ("c", 3, "z"), {"amount": 1, "shop": "x"}),
        ("id string, shop string", ("c", "z"), {"shop": "x"}),
        ("id string, amount bigint, place string", ("c", 3, "z"), {"amount": 1, "place": "x"}),
        ("id string, Amount int, shop string", ("c", 3, "z"), {"Amount": 1, "shop": "x"}),
        ("id string, amount int, note timestamp", ("c", 3, None), {"amount": 1, "note": None}),
    ],
    ids=["cast", "to decimal", "one less", "renamed", "in capitals", "cast, one less, one more"],
)
@pytest.mark.usefixtures("without_spark")
def test_the_lines_make_the_rows_fit(
    tmp_path: Path, kind: str, rows: str, new: tuple[Any, ...], old: dict[str, Any]
) -> None:
    opened(tmp_path, kind).write(rows_of(OLD, COLUMNS), 0)
    schema = columns(rows)
    exec(lines_said(opened(tmp_path, kind), schema), {})
    table = opened(tmp_path, kind)
    assert table.new_columns(schema) in ([], ["note"])
    assert table.write(rows_of([new], schema), 0) == Written(was_done=True), "it knows what it has, as before"
    assert table.write(rows_of([("a", *new[1:]), new], schema), 1) == Written(1, 0, 1)
    found = read(tmp_path)
    assert found.keys() == {"a", "b", "c"} and found["a"] == old
    assert tuple(found["c"][name] for name in schema.names[1:]) == new[1:]


@KINDS
def test_as_spark_sees_it(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    opened(tmp_path, kind, spark).write(spark.createDataFrame(OLD, COLUMNS), 0)
    rows = spark.createDataFrame([("c", "3")], "id string, amount string")
    exec(lines_said(opened(tmp_path, kind, spark), rows.schema), {})
    assert opened(tmp_path, kind, spark).write(rows, 1) == Written(1)
    assert read(tmp_path) == {"a": {"amount": "1"}, "b": {"amount": "2"}, "c": {"amount": "3"}}


@KINDS
@pytest.mark.usefixtures("without_spark")
def test_a_value_that_cannot_be_cast_changes_nothing(tmp_path: Path, kind: str) -> None:
    table = opened(tmp_path, kind)
    for batch, shop in enumerate(["1", "2", "x"]):
        table.write(rows_of([(str(batch), 1, shop)], COLUMNS), batch)
    before = read(tmp_path)
    lines = lines_said(opened(tmp_path, kind), columns("id string, amount bigint, shop bigint"))
    with pytest.raises(pa.ArrowInvalid):
        exec(lines, {})
    assert read(tmp_path) == before
    assert opened(tmp_path, kind).write(rows_of(OLD, COLUMNS), 3) == Written(2)


@pytest.mark.usefixtures("without_spark")
def test_a_guess_says_that_it_is_one(tmp_path: Path) -> None:
    opened(tmp_path, "delta").write(rows_of(OLD, COLUMNS), 0)
    lines = lines_said(opened(tmp_path, "delta"), columns("id string, amount bigint, place string"))
    assert 'rename_columns({"shop": "place"})  # or, if it is another: rows.drop_columns(["shop"])' in lines


@KINDS
@pytest.mark.parametrize("to", ["array", "binary"])
@pytest.mark.usefixtures("without_spark")
def test_where_there_is_no_cast_there_are_no_lines(tmp_path: Path, kind: str, to: str) -> None:
    opened(tmp_path, kind).write(rows_of(OLD, COLUMNS), 0)
    with pytest.raises(DoesNotFit, match=r"--reset --drop-tables\.$"):
        opened(tmp_path, kind).new_columns(columns(f"id string, amount {to}, shop string"))
