"""A table goes if a pipeline made it here. Whatever else is at its place stays, and is named."""

import errno
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from pyspark.sql.types import StructType

from klamm.pipeline.keeping import application, applications
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.tables import delta, job, open_table
from klamm.pipeline.tables.altering import lines_for
from klamm.pipeline.tables.dropping import DROPPED, Droppable, NotOurs, droppable, put_aside, sweep
from tests.pipeline.tables.without_spark import rows_of, run, session

COLUMNS = StructType().add("id", "string").add("amount", "long")
OWN = applications("shop", "sales")
ROWS = [("a", 1), ("b", 2), ("c", 3)]
KINDS = pytest.mark.parametrize("kind", ["delta", "parquet"])


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "run", run)


def make(path: Path, kind: str, rows: list[tuple[Any, ...]] = ROWS, batch: int = 0, pipeline: str = "shop") -> None:
    name = application(pipeline, "orders", "sales", "0123456789abcdef" * 2)
    open_table(session(2), str(path), format=kind, key=("id",), application=name).write(rows_of(rows, COLUMNS), batch)


def drop(table: Droppable) -> None:
    with put_aside([table]):
        pass
    sweep(table.path.parent)


def everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@KINDS
def test_a_table_of_ours_goes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "sales"
    assert droppable(path, OWN) is None, "there is none yet"
    make(path, kind)
    make(path, kind, [("d", 4)], 1)
    found = droppable(path, OWN)
    assert found is not None and found.name == "sales" and found.rows == 4
    drop(found)
    assert everything(tmp_path) == []


@KINDS
def test_also_one_without_rows(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "sales", kind, [])
    found = droppable(tmp_path / "sales", OWN)
    assert found is not None and found.rows == 0
    drop(found)
    assert everything(tmp_path) == []


def test_also_one_that_was_written_anew_and_one_with_a_checkpoint(tmp_path: Path) -> None:
    """As our own lines for altering a table do."""
    make(tmp_path / "sales", "delta")
    table = DeltaTable(tmp_path / "sales")
    write_deltalake(table, table.to_pyarrow_table().drop_columns(["amount"]), mode="overwrite", schema_mode="overwrite")
    table.create_checkpoint()
    found = droppable(tmp_path / "sales", OWN)
    assert found is not None and found.rows == 3


@pytest.mark.parametrize("comes_to_its_end", [True, False])
def test_also_a_parquet_table_right_after_our_lines_have_altered_it(tmp_path: Path, comes_to_its_end: bool) -> None:
    """They remove the note of its columns, which its next batch writes anew."""
    path = tmp_path / "sales"
    make(path, "parquet")
    lines = lines_for(COLUMNS, StructType().add("id", "string"), str(path), is_delta=False)
    exec(lines if comes_to_its_end else lines.partition("for file in files:\n    file.with_name")[0], {})
    assert (path / "_klamm" / "schema.json").exists() is not comes_to_its_end
    found = droppable(path, OWN)
    assert found is not None and found.rows == 3


@KINDS
def test_all_of_them_or_none(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "first", kind)
    make(tmp_path / "second", kind)
    found = [droppable(tmp_path / name, applications("shop", "sales")) for name in ("first", "second")]
    tables = [table for table in found if table is not None]
    before, rename = everything(tmp_path), Path.rename

    def busy(path: Path, target: Path) -> Path:
        if path.name == "second":
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", busy)
    said = r"/second cannot be moved away: Device .* busy\. .*stay as they were\. Mend"
    with pytest.raises(PipelineError, match=said), put_aside(tables):
        raise AssertionError("one is still there")
    assert everything(tmp_path) == before


def test_where_one_lies_that_cannot_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "sales", "delta")
    table = droppable(tmp_path / "sales", OWN)
    assert table is not None

    def full(path: Path, target: Path) -> Path:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    said = r"But .*/sales is at .*/\.dropped\.\w+ now: move it back\. "
    with pytest.raises(PipelineError, match=said), put_aside([table]):
        monkeypatch.setattr(Path, "rename", full)
        (tmp_path / "checkpoints").rename(tmp_path / "elsewhere")


@KINDS
def test_half_of_a_dropped_table_is_swept_up(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "sales", kind)
    found = droppable(tmp_path / "sales", OWN)
    assert found is not None
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
        drop(found)
    assert [path.name.startswith(DROPPED) for path in tmp_path.iterdir()] == [True]
    sweep(tmp_path)
    assert everything(tmp_path) == []


def stays(path: Path, why: str) -> None:
    before = everything(path.parent)
    with pytest.raises(NotOurs, match=rf"{re.escape(str(path))} is not removed: .*{why}.*nothing was changed.*--data"):
        droppable(path, OWN)
    assert everything(path.parent) == before


@KINDS
@pytest.mark.parametrize("other", ["bakery", "shop.north", "shop-2"])
def test_a_table_that_another_pipeline_writes_stays(tmp_path: Path, kind: str, other: str) -> None:
    make(tmp_path / "sales", kind, pipeline=other)
    stays(tmp_path / "sales", rf"{other}\.orders\.sales\.\w+ has written batches to it")
    make(tmp_path / "sales", kind, [("d", 4)], 1)
    stays(tmp_path / "sales", rf"{other}\.orders\.sales")


def test_another_s_batches_are_seen_in_a_checkpoint_too(tmp_path: Path) -> None:
    make(tmp_path / "sales", "delta", pipeline="bakery")
    DeltaTable(tmp_path / "sales").create_checkpoint()
    for commit in (tmp_path / "sales" / "_delta_log").glob("*.json"):
        commit.unlink()
    stays(tmp_path / "sales", "bakery")


@KINDS
def test_a_file_beside_the_table_is_not_lost(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "sales", kind)
    (tmp_path / "sales" / "notes.txt").write_text("mine")
    stays(tmp_path / "sales", "notes.txt in it is no part of the table")


@KINDS
@pytest.mark.parametrize("name", ["export.parquet", "part-mine.parquet", "_export.parquet", ".export.parquet.crc"])
def test_nor_is_one_that_is_called_like_a_table_s(tmp_path: Path, kind: str, name: str) -> None:
    make(tmp_path / "sales", kind)
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "sales" / name)
    stays(tmp_path / "sales", name)


def test_files_that_a_delta_table_has_had_go_with_it(tmp_path: Path) -> None:
    """By the log, whatever they are called: one that is there in a commit, one that was there only in a checkpoint."""
    path = tmp_path / "sales"
    make(path, "delta")
    for number in range(2):
        name = f"by hand {number}.parquet"
        pq.write_table(pa.table({"id": ["x"], "amount": [number]}), path / name)
        table = DeltaTable(path)
        size = (path / name).stat().st_size
        action = AddAction(name, size, {}, 0, True, '{"numRecords": 1}')
        table.create_write_transaction([action], "append", table.schema())
        if not number:
            (path / f".{name}.crc").touch()
            DeltaTable(path).delete("amount = 0 and id = 'x'")
    DeltaTable(path).create_checkpoint()
    for commit in sorted((path / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    assert {"by hand 0.parquet", "by hand 1.parquet"} <= set(everything(path))
    found = droppable(path, OWN)
    assert found is not None and found.rows == 4


def test_leftovers_of_a_delta_table_go_with_it(tmp_path: Path) -> None:
    """Files that no version of it names any more: of batches that failed, or replaced long ago."""
    path = tmp_path / "sales"
    make(path, "delta")
    write_deltalake(path, pa.table({"id": ["d"], "amount": [4]}), mode="append")
    files = list(path.glob("*.parquet"))
    log = {file: file.read_bytes() for file in (path / "_delta_log").iterdir()}
    make(path, "delta", [("e", 5)], 1)
    write_deltalake(path, pa.table({"id": ["f"], "amount": [6]}), mode="append")
    for file in (path / "_delta_log").iterdir():
        if file not in log:
            file.unlink()
    assert len(list(path.glob("*.parquet"))) >= len(files) + 2
    found = droppable(path, OWN)
    assert found is not None and found.rows == 4


def test_a_delta_table_of_somebody_else(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "sales", pa.table({"id": ["a"], "amount": [1]}))
    stays(tmp_path / "sales", "another program made that Delta table")
    make(tmp_path / "sales", "delta", [("b", 2)])
    assert DeltaTable(tmp_path / "sales").count() == 2
    stays(tmp_path / "sales", "another program made that Delta table")


def test_parquet_files_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "sales").mkdir()
    pq.write_table(pa.table({"id": ["a"], "amount": [1]}), tmp_path / "sales" / "mine.parquet")
    stays(tmp_path / "sales", "neither a Delta table nor")
    make(tmp_path / "sales", "parquet", [("b", 2)])
    stays(tmp_path / "sales", "another program wrote mine.parquet")


def test_what_is_no_directory(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", "delta")
    (tmp_path / "sales").symlink_to(tmp_path / "elsewhere")
    stays(tmp_path / "sales", "it is a link")
    (tmp_path / "sales").unlink()
    (tmp_path / "sales").touch()
    stays(tmp_path / "sales", "it is a file")


def test_a_delta_table_that_cannot_be_read(tmp_path: Path) -> None:
    make(tmp_path / "sales", "delta")
    (tmp_path / "sales" / "_delta_log" / f"{0:020}.json").write_text("cut")
    stays(tmp_path / "sales", "it cannot be read")


def test_the_settings_tell_our_tables(tmp_path: Path) -> None:
    make(tmp_path / "sales", "delta")
    assert DeltaTable(tmp_path / "sales").metadata().configuration == delta.CONFIGURATION
