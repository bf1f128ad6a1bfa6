"""Whatever dies, wherever: the batch is run again, and the table is the one a dictionary would be.

The tasks are real, the job that deals rows to them is ours (`without_spark`), so many batches take little time.
"""

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql.types import StructType

from klamm.pipeline.tables import DoesNotFit, TableSink, Written, delta, job, open_table, parquet, places, writing
from tests.pipeline.tables.without_spark import rows_of, run, session

COLUMNS = StructType().add("id", "string").add("line", "integer").add("amount", "long")
KEY = ("id", "line")


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "run", run)


def opened(path: Path, mode: str = "append", kind: str = "delta", cores: int = 2, app: str = "app") -> TableSink:
    key = () if mode == "append" else KEY
    on_match = "ignore" if mode == "append" else mode
    return open_table(session(cores), str(path), format=kind, key=key, on_match=on_match, application=app)


def read(path: Path) -> list[tuple[Any, ...]]:
    """As any reader would: with deltalake, or as a plain directory."""
    table = DeltaTable(path).to_pyarrow_table() if (path / "_delta_log").exists() else pq.read_table(path)
    return sorted(tuple(row.values()) for row in table.to_pylist())


class Twin:
    """What a beginner would write."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.rows: list[tuple[Any, ...]] = []

    def write(self, rows: list[tuple[Any, ...]]) -> Written:
        if self.mode == "append":
            self.rows += rows
            return Written(len(rows))
        before = {row[:2]: row for row in self.rows}
        after = dict(before)
        for row in rows:
            if self.mode == "update" or row[:2] not in after:
                after[row[:2]] = row
        self.rows = list(after.values())
        replaced = {row[:2] for row in rows} & set(before) if self.mode == "update" else set()
        added = len(after) - len(before)
        return Written(added, len(replaced), len(rows) - added - len(replaced))


def some_rows(chance: random.Random) -> list[tuple[Any, ...]]:
    many = chance.choice([0, 1, 5, 60])
    return [(f"k{chance.randrange(50)}", chance.randrange(3), chance.randrange(1000)) for _ in range(many)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("mode", "kind"),
    [("append", "delta"), ("ignore", "delta"), ("update", "delta"), ("append", "parquet"), ("ignore", "parquet")],
)
def test_like_a_dictionary(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    kind: str,
    seed: int,
) -> None:
    """Drivers come and go, on machines with few and many cores; some batches are run again, by old and new drivers."""
    monkeypatch.setattr(places, "BUCKET_BYTES", 2000)
    monkeypatch.setattr(delta, "SWEEP_EVERY", 7)
    chance, twin, path = random.Random(seed), Twin(mode), tmp_path / "t"
    table = opened(path, mode, kind)
    for batch_id in range(30):
        rows = some_rows(chance)
        if chance.random() < 0.3:
            table = opened(path, mode, kind, cores=chance.choice([1, 2, 4, 8]))
        assert table.write(rows_of(rows, COLUMNS), batch_id) == twin.write(rows)
        if rows and chance.random() < 0.3:
            assert (table if chance.random() < 0.5 else opened(path, mode, kind)).write(
                rows_of(rows, COLUMNS), batch_id
            ).rows_added == 0
        assert read(path) == sorted(twin.rows)
    if kind == "delta":
        assert len(DeltaTable(path).file_uris()) < 8 * places.AS_MANY
        assert DeltaTable(path).count() == len(twin.rows)


class Killed(BaseException):
    """As by kill -9: nobody cleans up."""


STEPS: dict[str, list[tuple[Any, str]]] = {
    "delta": [
        (delta.DeltaTable, "create"),
        (writing.Files, "_finish"),
        (job, "run"),
        (delta.DeltaTable, "create_write_transaction"),
        (delta.DeltaTable, "update_incremental"),
    ],
    "parquet": [
        (writing.Files, "_finish"),
        (job, "run"),
        (parquet.Path, "rename"),
        (parquet, "_write_down"),
        (parquet.Path, "replace"),
        (parquet.shutil, "rmtree"),
    ],
}


def dies(step: Callable[..., Any], at_call: int, before: bool) -> Callable[..., Any]:
    calls = 0

    def instead(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == at_call:
            raise Killed
        done = step(*args, **kwargs)
        if calls == at_call:
            raise Killed
        return done

    return instead


@pytest.mark.parametrize(
    ("mode", "kind", "place", "name"),
    [
        (mode, kind, place, name)
        for kind, modes in (("delta", ("append", "ignore", "update")), ("parquet", ("append", "ignore")))
        for mode in modes
        for place, name in STEPS[kind]
    ],
)
def test_killed_between_any_two_steps(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    kind: str,
    place: Any,
    name: str,
) -> None:
    """At the first and the second call of each step, before and after it, in the first batch and in a later one."""
    monkeypatch.setattr(delta.DeltaSink, "_discard", lambda *_: None)
    monkeypatch.setattr(writing.Files, "discard", lambda *_: None)
    kills = 0
    for number, (at_call, before, dying) in enumerate(
        (call, before, dying) for call in (1, 2) for before in (True, False) for dying in (0, 1)
    ):
        chance, twin, path = random.Random(number), Twin(mode), tmp_path / str(number)
        for batch_id in range(3):
            rows = [*some_rows(chance), ("k1", 1, batch_id), ("k2", 2, batch_id), (f"new {batch_id}", 0, 0)]
            twin.write(rows)
            if batch_id == dying:
                with monkeypatch.context() as patch:
                    patch.setattr(place, name, dies(getattr(place, name), at_call, before))
                    try:
                        opened(path, mode, kind).write(rows_of(rows, COLUMNS), batch_id)
                    except Killed:
                        kills += 1
            opened(path, mode, kind).write(rows_of(rows, COLUMNS), batch_id)
            assert read(path) == sorted(twin.rows)
    assert kills >= 1


def test_what_failed_attempts_leave_is_swept_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "SWEEP_EVERY", 5)
    monkeypatch.setitem(delta.CONFIGURATION, "delta.deletedFileRetentionDuration", "interval 0 hours")
    table = opened(tmp_path)
    table.write(rows_of([("a", 1, 1)], COLUMNS), 0)
    left = tmp_path / "part-of-a-task-that-was-killed.parquet"
    pq.write_table(rows_of([("b", 1, 1)], COLUMNS).table, left)
    for batch_id in range(1, 8):
        table.write(rows_of([("a", 1, batch_id)], COLUMNS), batch_id)
    assert not left.exists()
    assert len(read(tmp_path)) == 8


@pytest.mark.parametrize("mode", ["append", "ignore", "update"])
def test_tasks_that_ran_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """A task that Spark started again, or a second time for speed: the first one's files are nobody's."""
    monkeypatch.setattr(job, "run", lambda *args: (run(*args), run(*args))[1])
    twin, table = Twin(mode), opened(tmp_path, mode)
    for batch_id in range(3):
        rows = [("k", 1, batch_id), (f"k{batch_id}", 1, batch_id)]
        assert table.write(rows_of(rows, COLUMNS), batch_id) == twin.write(rows)
    assert read(tmp_path) == sorted(twin.rows)


@pytest.mark.parametrize("step", ["run", "_maybe_sweep"])
def test_kill_9(tmp_path: Path, step: str) -> None:
    """Another process, killed after the files and before the commit, or after the commit and before the return."""
    rows = [("a", 1, 1), ("b", 1, 1)]
    program = f"""
import os, signal
from klamm.pipeline.tables import delta, job
from tests.pipeline.tables import test_once
from tests.pipeline.tables.without_spark import rows_of, run

def die(*args):
    if {step!r} == "run":
        run(*args)
    os.kill(os.getpid(), signal.SIGKILL)

job.run = run
setattr(job if {step!r} == "run" else delta.DeltaSink, {step!r}, die)
table = test_once.opened(test_once.Path({str(tmp_path)!r}), "ignore")
table.write(rows_of({rows!r}, test_once.COLUMNS), 0)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=120)
    assert ended.returncode == -signal.SIGKILL
    was_done = step != "run"
    assert len(read(tmp_path)) == (2 if was_done else 0)
    assert list(tmp_path.glob("*.parquet"))
    assert opened(tmp_path, "ignore").write(rows_of(rows, COLUMNS), 0).was_done == was_done
    assert read(tmp_path) == rows


def test_a_batch_that_fails_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path, "ignore")
    table.write(rows_of([("a", 1, 1)], COLUMNS), 0)
    before = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(DoesNotFit, match=r"1 row has null in the key \(id, line\).*quarantine"):
        table.write(rows_of([("b", 1, 1), (None, 1, 1)], COLUMNS), 1)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "statistics", dies(writing.statistics, 1, True))
        with pytest.raises(Killed):
            table.write(rows_of([("b", 1, 1)], COLUMNS), 1)
    assert sorted(tmp_path.glob("*.parquet")) == before


@pytest.mark.parametrize("mode", ["append", "ignore", "update"])
def test_others_write_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Between the job and the commit of one driver: another application's batch, a compaction, the batch's own twin."""
    twin = Twin(mode)
    table = opened(tmp_path, mode)
    for batch_id in range(3):
        rows = [(f"k{batch_id}", 1, 1), ("k", 1, batch_id)]
        assert table.write(rows_of(rows, COLUMNS), batch_id) == twin.write(rows)

    def meanwhile(what: Callable[[], object]) -> Callable[..., Any]:
        def once(*args: Any) -> Any:
            report = run(*args)
            monkeypatch.setattr(job, "run", run)
            what()
            return report

        return once

    theirs, ours = [("k3", 1, 7), ("k", 1, 7)], [("k3", 1, 8), ("k", 1, 8), ("k4", 1, 8)]
    other = opened(tmp_path, mode, app="other")
    monkeypatch.setattr(job, "run", meanwhile(lambda: other.write(rows_of(theirs, COLUMNS), 0)))
    assert table.write(rows_of(ours, COLUMNS), 3) == (twin.write(theirs), twin.write(ours))[1]
    assert read(tmp_path) == sorted(twin.rows)

    ours = [("k", 1, 9), ("k5", 1, 9)]
    monkeypatch.setattr(job, "run", meanwhile(lambda: DeltaTable(tmp_path).optimize.compact()))
    assert table.write(rows_of(ours, COLUMNS), 4) == twin.write(ours)
    assert read(tmp_path) == sorted(twin.rows)

    ours = [("k", 1, 10), ("k6", 1, 10)]
    zombie = opened(tmp_path, mode)
    monkeypatch.setattr(job, "run", meanwhile(lambda: zombie.write(rows_of(ours, COLUMNS), 5)))
    assert table.write(rows_of(ours, COLUMNS), 5) == Written(was_done=True)
    twin.write(ours)
    assert read(tmp_path) == sorted(twin.rows)


def test_a_commit_that_was_made_and_said_to_have_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path)
    commit = DeltaTable.create_write_transaction

    def made_and_failed(*args: Any, **kwargs: Any) -> None:
        commit(*args, **kwargs)
        raise CommitFailedError("nobody heard the answer")

    monkeypatch.setattr(delta.DeltaTable, "create_write_transaction", made_and_failed)
    assert table.write(rows_of([("a", 1, 1)], COLUMNS), 0) == Written(was_done=True)
    assert read(tmp_path) == [("a", 1, 1)]


def test_gives_up_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> None:
        raise CommitFailedError("somebody was quicker")

    monkeypatch.setattr(delta.DeltaTable, "create_write_transaction", never)
    with pytest.raises(CommitFailedError, match="quicker"):
        opened(tmp_path).write(rows_of([("a", 1, 1)], COLUMNS), 0)
    assert not list(tmp_path.glob("*.parquet"))


def test_done_is_still_known_when_the_log_was_cleaned(tmp_path: Path) -> None:
    table = opened(tmp_path)
    for batch_id in range(5):
        table.write(rows_of([("a", 1, batch_id)], COLUMNS), batch_id)
    there = DeltaTable(tmp_path)
    there.create_checkpoint()
    for number in range(5):
        (tmp_path / "_delta_log" / f"{number:020d}.json").unlink()
    assert opened(tmp_path).write(rows_of([("a", 1, 4)], COLUMNS), 4) == Written(was_done=True)
    assert len(read(tmp_path)) == 5
