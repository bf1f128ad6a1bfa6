"""What a task does by itself: files that may hold a key, small ones merged, rows that are too many for memory."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from klamm.pipeline.tables import task
from klamm.pipeline.tables.matching import is_among
from klamm.pipeline.tables.places import (
    AS_MANY,
    SMALL_BYTES,
    Held,
    Place,
    belongs_into,
    buckets_for,
    held,
    may_hold_keys_of,
    new_name,
    stem_of,
    to_merge,
)
from klamm.pipeline.tables.spill import Gathered
from klamm.pipeline.tables.work import Report, Work


def test_a_name_says_where_a_file_belongs() -> None:
    for theirs in (1, 2, 8):
        for ours in (1, 2, 8):
            for key in range(32):
                file = held(new_name("part-app", Place("0a" * 4, key % theirs, theirs)), 1)
                assert may_hold_keys_of(file, Place("0a" * 4, key % ours, ours))
                assert belongs_into(file, Place("0a" * 4, key % ours, ours)) == (theirs >= ours)
    assert not may_hold_keys_of(Held("x", 1, Place("k", 3, 8)), Place("k", 0, 2))
    assert may_hold_keys_of(Held("x", 1, Place("another key", 3, 8)), Place("k", 0, 2))
    assert not belongs_into(held("somebody-else.parquet", 1), Place("k", 0, 1))


def test_names_of_applications_do_not_meet() -> None:
    assert stem_of("a/b", 1) != stem_of("a.b", 1)
    assert not stem_of("a", 11).startswith(stem_of("a", 1))


def test_small_files_are_merged_by_size() -> None:
    tiny = [Held(f"t{number}", 1000 + number, None) for number in range(AS_MANY)]
    some = [Held(f"s{number}", 300_000, None) for number in range(AS_MANY - 1)]
    large = [Held(f"l{number}", SMALL_BYTES, None) for number in range(50)]
    assert to_merge(tiny + some + large) == tiny
    assert to_merge(tiny[1:] + some + large) == []


def test_buckets_grow_with_the_table() -> None:
    assert [buckets_for(size << 20, 6) for size in (0, 8, 9, 17, 1000)] == [1, 1, 2, 4, 4]
    assert buckets_for(1 << 50, 1) == 1


@pytest.mark.parametrize(
    "values",
    [
        ["a", "ä", "b"],
        [1, 2, 3],
        [True, False],
        [b"a", b"\xff", b""],
        [Decimal("1.10"), Decimal("-1.10"), Decimal("1.11")],
        [datetime.date(2026, 1, 1), datetime.date(1969, 1, 1)],
        [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), datetime.datetime(1969, 1, 1, tzinfo=datetime.UTC)],
    ],
)
def test_keys_of_every_type_are_found(tmp_path: Path, values: list[Any]) -> None:
    of = pa.timestamp("us", "UTC") if isinstance(values[0], datetime.datetime) else pa.array(values).type
    schema = pa.schema([("k", of), ("n", pa.int64())])
    files: tuple[Held, ...] = ()
    for turn, some in enumerate([values[:1], values]):
        rows = pa.table({"k": pa.array(some, of), "n": [turn] * len(some)}, schema=schema)
        rows = rows.append_column(task.ORDER, pa.array(np.arange(len(some))))
        rows = rows.append_column(task.BUCKET, pa.array([0] * len(some), pa.int32()))
        work = Work(str(tmp_path), str(tmp_path), f"part-{turn}", schema, "ignore", ("k",), "00000000", 1, files)
        report = Report.of_all([text for one in task.merge_in(work, rows.to_batches()) for text in one[0].to_pylist()])
        assert report.rows_added == (1 if turn == 0 else len(values) - 1)
        files = tuple(held(file.name, file.size) for file in report.added)


def test_whole_keys_are_compared() -> None:
    wanted = pa.table({"a": ["x", "y"], "b": [1, 2]})
    rows = pa.table({"a": ["x", "x", "y", "z"], "b": [1, 2, 2, 1]})
    assert is_among(rows, wanted, ("a", "b")).to_pylist() == [True, False, True, False]
    assert is_among(rows.slice(0, 0), wanted, ("a", "b")).to_pylist() == []


def test_rows_that_memory_does_not_hold() -> None:
    batches = [pa.record_batch({"a": [f"{number}" * 50], "b": [number]}) for number in range(20)]
    gathered = Gathered(iter(batches), in_memory_bytes=200)
    assert gathered.num_rows == 20
    assert list(gathered.batches()) == batches
    assert gathered.column("b").to_pylist() == list(range(20))
