"""Tables written by Spark's tasks. Small: what Spark has no part in is tested without it (`test_once`)."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from klamm.pipeline.tables import DoesNotFit, Written, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id string, line int, amount long"
ALL_TYPES = """text string, small byte, short short, number int, long long, single float, double double,
    price decimal(18,2), flag boolean, bytes binary, day date, moment timestamp, local timestamp_ntz,
    source struct<topic: string, offset: long>, lines array<struct<sku: string, price: decimal(9,2)>>,
    tags map<string, int>"""


def rows_of(spark: "SparkSession", rows: list[tuple[Any, ...]], columns: str = COLUMNS) -> "DataFrame":
    """In this order, over two partitions."""
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, 2), columns)


def read(path: Path) -> list[tuple[Any, ...]]:
    table = DeltaTable(path).to_pyarrow_table() if (path / "_delta_log").exists() else pq.read_table(path)
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_batch_that_is_done_is_skipped(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t"
    first = rows_of(spark, [("a", 1, 10), ("a", 1, 10)])
    table = open_table(spark, str(path), format=kind, application="app")
    assert table.write(first, 0) == Written(2)
    again = open_table(spark, f"file:{path}", format=kind, application="app")
    assert again.write(first, 0) == Written(was_done=True)
    other = open_table(spark, str(path), format=kind, application="other")
    assert other.write(rows_of(spark, [("c", 1, 30)]), 0) == Written(1)
    assert read(path) == [("a", 1, 10), ("a", 1, 10), ("c", 1, 30)]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_whether_rows_will_fit_is_known_before_there_are_any(spark: "SparkSession", tmp_path: Path, kind: str) -> None:
    table = open_table(spark, str(tmp_path / "t"), format=kind, application="app")
    rows = rows_of(spark, [("a", 1, 10)])
    assert table.new_columns(rows.schema) == [], "there is no table"
    table.write(rows, 0)
    assert table.new_columns(rows.schema) == []
    with pytest.raises(DoesNotFit, match="line is missing in the rows"):
        table.new_columns(rows.drop("line").schema)
    more = rows.selectExpr("*", "'monday' as day").schema
    if kind == "delta":
        assert table.new_columns(more) == ["day"]
    else:
        with pytest.raises(DoesNotFit, match="day"):
            table.new_columns(more)


@pytest.mark.parametrize(("mode", "kept"), [("ignore", 0), ("update", 1)])
def test_one_row_a_key(spark: "SparkSession", tmp_path: Path, mode: str, kept: int) -> None:
    """The first or the last in the frame's order; over the buckets that Spark deals, two at first and then one."""
    table = open_table(spark, str(tmp_path), key=("id", "line"), on_match=mode, application="app")
    twice = [(f"k{number}", number % 3, turn) for turn in (0, 1) for number in range(20)]
    assert table.write(rows_of(spark, twice), 0) == Written(20, 0, 20)
    assert read(tmp_path) == sorted((f"k{number}", number % 3, kept) for number in range(20))
    later = [(f"k{number}", number % 3, 2) for number in range(10, 30)]
    assert table.write(rows_of(spark, later), 1) == Written(10, *((10, 0) if mode == "update" else (0, 10)))
    old = [(f"k{number}", number % 3, 2 * kept if number >= 10 else kept) for number in range(20)]
    assert read(tmp_path) == sorted(old + later[10:])


def test_every_type_comes_back(spark: "SparkSession", tmp_path: Path) -> None:
    """Through deltalake and, file by file, through Spark."""
    moment = datetime.datetime(2026, 11, 16, 9, 30, 0, 123456)
    row = (
        "ä", 1, 2, 3, 4, 0.5, 0.25, Decimal("12.34"), True, b"\x00\xff", moment.date(), moment, moment,
        ("invoice", 7), [("s", Decimal("1.50"))], {"a": 1},
    )  # fmt: skip
    nothing = (None,) * len(row)
    frame = rows_of(spark, [row, nothing], ALL_TYPES)
    table = open_table(spark, str(tmp_path), application="app")
    assert table.write(frame, 0) == Written(2)
    assert open_table(spark, str(tmp_path), application="app").write(frame, 1) == Written(2)
    delta = DeltaTable(tmp_path)
    came = [one for one in delta.to_pyarrow_table().to_pylist() if one["text"]]
    assert len(came) == 2
    assert (came[0]["price"], came[0]["local"], came[0]["bytes"]) == (Decimal("12.34"), moment, b"\x00\xff")
    assert came[0]["source"] == {"topic": "invoice", "offset": 7}
    assert came[0]["lines"] == [{"sku": "s", "price": Decimal("1.50")}]
    assert delta.file_uris(file_pruning_predicate="number > 3") == []
    back = spark.read.schema(frame.schema).parquet(*delta.file_uris())
    assert back.where("text is not null").collect() == frame.where("text is not null").collect() * 2
