"""Rows fit a table or are refused in one paragraph that names the columns and says what to do."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from klamm.pipeline.tables import DoesNotFit, Written, job, open_table
from tests.pipeline.tables.without_spark import rows_of, run, session

COLUMNS = StructType().add("id", "string").add("amount", "long")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "run", run)


def test_new_columns_are_added_to_a_delta_table(tmp_path: Path) -> None:
    more = StructType().add("id", "string").add("note", "string").add("amount", "long")
    for number, mode in enumerate(["ignore", "update"]):
        path = str(tmp_path / mode)
        table = open_table(session(2), path, key=("id",), on_match=mode, application="app")
        table.write(rows_of([("a", 1), ("b", 1)], COLUMNS), 0)
        assert table.write(rows_of([("a", "new", 2), ("c", "new", 2)], more), 1) == Written(1, number, 1 - number)
        rows = {row["id"]: (row["amount"], row["note"]) for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
        assert rows == {"a": (2, "new") if number else (1, None), "b": (1, None), "c": (2, "new")}


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_what_does_not_fit(tmp_path: Path, kind: str) -> None:
    table = open_table(session(2), str(tmp_path), format=kind, application="app")
    table.write(rows_of([("a", 1)], COLUMNS), 0)
    other = rows_of([("b", "1")], StructType().add("id", "string").add("amount", "string"))
    with pytest.raises(DoesNotFit, match=r"amount is bigint in the table and string in the rows.*--data directory"):
        table.write(other, 1)
    with pytest.raises(DoesNotFit, match="amount is missing in the rows"):
        table.write(rows_of([("b", 1)], StructType().add("id", "string").add("total", "long")), 1)
    with pytest.raises(DoesNotFit, match=r"ID \(string\) is not in the table"):
        table.write(rows_of([("b", 1)], StructType().add("ID", "string").add("amount", "long")), 1)
    if kind == "parquet":
        with pytest.raises(DoesNotFit, match=r"note \(string\) is not in the table"):
            table.write(rows_of([("b", 1, "x")], StructType([*COLUMNS]).add("note", "string")), 1)
    assert table.write(rows_of([("b", 2)], COLUMNS), 1) == Written(1)


def test_keys_and_types_that_tables_do_not_take(tmp_path: Path) -> None:
    table = open_table(session(2), str(tmp_path / "a"), key=("ident",), application="app")
    with pytest.raises(DoesNotFit, match="is ident, which its rows do not have: they have id, amount"):
        table.write(rows_of([("a", 1)], COLUMNS), 0)
    table = open_table(session(2), str(tmp_path / "a"), key=("price",), application="app")
    with pytest.raises(DoesNotFit, match="price of type double, which cannot be compared exactly"):
        table.write(rows_of([(1.0,)], StructType().add("price", "double")), 0)
    with pytest.raises(DoesNotFit, match="have a of type void"):
        table.write(rows_of([(None,)], StructType().add("a", "void")), 0)
    with pytest.raises(DoesNotFit, match="A and a, whose names are the same"):
        table.write(rows_of([(1, 1)], StructType().add("a", "long").add("A", "long")), 0)


def test_tables_that_are_not_ours_to_make(tmp_path: Path) -> None:
    delta, plain = str(tmp_path / "delta"), str(tmp_path / "plain")
    open_table(session(2), delta, application="app").write(rows_of([("a", 1)], COLUMNS), 0)
    open_table(session(2), plain, format="parquet", application="app").write(rows_of([("a", 1)], COLUMNS), 0)
    with pytest.raises(DoesNotFit, match="is a Delta table"):
        open_table(session(2), delta, format="parquet", application="app").write(rows_of([("a", 1)], COLUMNS), 1)
    with pytest.raises(DoesNotFit, match="holds Parquet files and no Delta table"):
        open_table(session(2), plain, application="app").write(rows_of([("a", 1)], COLUMNS), 1)
    by_id = tmp_path / "partitioned"
    DeltaTable.create(by_id, DeltaTable(delta).schema(), partition_by="id")
    with pytest.raises(DoesNotFit, match="is partitioned by id"):
        open_table(session(2), str(by_id), application="app").write(rows_of([("a", 1)], COLUMNS), 0)


def test_what_makes_no_sense_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot replace rows"):
        open_table(session(1), str(tmp_path), format="parquet", key=("id",), on_match="update", application="app")
    with pytest.raises(ValueError, match="s3: is not one"):
        open_table(session(1), "s3://bucket/table", application="app")
    with pytest.raises(ValueError, match="delta or parquet, not 'csv'"):
        open_table(session(1), str(tmp_path), format="csv", application="app")
    with pytest.raises(ValueError, match="ignore or update, not 'replace'"):
        open_table(session(1), str(tmp_path), on_match="replace", application="app")
