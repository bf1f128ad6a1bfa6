"""Each row once: batches are skipped when they are done, keys are kept once, schemas fit or are refused."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from klamm.pipeline.tables import Written, open_table
from klamm.pipeline.tables.places import AS_MANY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id string, line int, amount long"


def rows_of(spark: "SparkSession", rows: Sequence[tuple[Any, ...]], columns: str = COLUMNS) -> "DataFrame":
    """In this order, over two partitions."""
    return spark.createDataFrame(spark.sparkContext.parallelize(list(rows), 2), columns)


def read(path: Path) -> list[tuple[Any, ...]]:
    if (path / "_delta_log").exists():
        table = DeltaTable(path).to_pyarrow_table()
    else:
        table = pq.read_table(path)
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_a_batch_that_is_done_is_skipped(spark: "SparkSession", tmp_path: Path, format: str) -> None:  # noqa: A002
    path = tmp_path / "t"
    first = rows_of(spark, [("a", 1, 10), ("a", 1, 10)])
    table = open_table(spark, str(path), format=format, application="app")
    assert table.write(first, 0) == Written(2, 0, False)
    assert table.write(rows_of(spark, [("b", 1, 20)]), 1) == Written(1, 0, False)
    again = open_table(spark, f"file:{path}", format=format, application="app")
    assert again.write(first, 0) == again.write(first, 1) == Written(was_done=True)
    assert read(path) == [("a", 1, 10), ("a", 1, 10), ("b", 1, 20)]
    other = open_table(spark, str(path), format=format, application="other")
    assert other.write(rows_of(spark, [("c", 1, 30)]), 0) == Written(1, 0, False)
    assert len(read(path)) == 4


@pytest.mark.parametrize(("format", "mode"), [("delta", "ignore"), ("parquet", "ignore"), ("delta", "update")])
def test_one_row_a_key(spark: "SparkSession", tmp_path: Path, format: str, mode: str) -> None:  # noqa: A002
    """Against a dictionary; opened anew for every batch, and every other batch run twice."""
    chance = random.Random(6)
    twin: dict[tuple[str, int], int] = {}
    path = tmp_path / "t"
    for batch_id in range(AS_MANY + 3):
        rows = [
            (f"k{chance.randrange(40)}", chance.randrange(3), chance.randrange(1000))
            for _ in range(chance.choice([0, 1, 30]))
        ]
        added = replaced = 0
        before = set(twin)
        for name, line, amount in rows:
            if mode == "update" or (name, line) not in twin:
                twin[name, line] = amount
        added = len(set(twin) - before)
        replaced = len({(name, line) for name, line, _ in rows} & before) if mode == "update" else 0
        frame = rows_of(spark, rows)
        table = open_table(spark, str(path), format=format, key=("id", "line"), on_match=mode, application="app")
        assert table.write(frame, batch_id) == Written(added, replaced, False)
        if batch_id % 2:
            again = table.write(frame, batch_id)
            assert (again.rows_added, again.rows_replaced) == (0, 0) or (mode == "update" and not added + replaced)
        assert read(path) == sorted((*key, amount) for key, amount in twin.items())
