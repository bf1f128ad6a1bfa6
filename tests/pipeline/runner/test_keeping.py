"""A directory has one run at a time, and its checkpoints belong to one cluster, its topics and one kind of state."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klamm.pipeline.declaration import Source, Table, Topic
from klamm.pipeline.keeping import Busy, Claim, Directory, Foreign
from klamm.pipeline.planning import PlannedQuery
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.running import surprises


def rows(orders: Any) -> Any:
    return orders


REVENUE = PlannedQuery("revenue", (Source("orders"),), (), None, ("Aggregate(store string, revenue double)",), "update")


def begin_a_batch(directory: Directory, query: str = "revenue") -> None:
    """As Spark does."""
    offsets = directory.checkpoint(query) / "offsets"
    offsets.mkdir(exist_ok=True)
    (offsets / "0").touch()


def claimed(directory: Directory, query: PlannedQuery, cluster_id: str) -> Claim:
    """As a run does it that has found nothing wrong."""
    claim = directory.claimed(query, cluster_id)
    directory.settle(query.name, claim)
    return claim


def test_the_second_run_is_told_who_is_there(tmp_path: Path) -> None:
    busy = pytest.raises(Busy, match=rf"process {os.getpid()}.*--data")
    with Directory(tmp_path / "data").held(), busy, Directory(tmp_path / "data").held():
        pass
    with Directory(tmp_path / "data").held():
        pass


def test_a_run_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    data = tmp_path / "pipeline-data" / "shop"
    with pytest.raises(Foreign), Directory(data).held():
        raise Foreign("of another cluster")
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_wrote_stays_without_its_lock(tmp_path: Path) -> None:
    data = tmp_path / "pipeline-data" / "shop"
    with Directory(data).held():
        assert (data / "lock").read_text() == str(os.getpid())
        (data / "spark.log").touch()
    assert [each.name for each in data.iterdir()] == ["spark.log"]


HOLDING = """
import sys
from pathlib import Path
from klamm.pipeline.keeping import Directory
with Directory(Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_run_holds_nobody_up(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stdout.readline() == "held\n"
        with pytest.raises(Busy, match=f"process {run.pid}"), Directory(tmp_path).held():
            pass
        run.kill()
    assert (tmp_path / "lock").read_text() == str(run.pid), "it had no time to remove it"
    with Directory(tmp_path).held():
        assert (tmp_path / "lock").read_text() == str(os.getpid())
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_goes_while_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is removed, by the run that ends, after this one has opened it. What is locked then is nobody's: a third
    run would make a file anew, and have it locked as well."""
    lock, flock, calls = tmp_path / "lock", fcntl.flock, []

    def removed_at_first(file: Any, how: int) -> None:
        if not calls:
            lock.unlink()
        calls.append(how)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", removed_at_first)
    with Directory(tmp_path).held():
        assert len(calls) == 2
        with pytest.raises(Busy, match=f"process {os.getpid()}"), Directory(tmp_path).held():
            pass
    assert not lock.exists()


def test_a_run_does_not_remove_another_s_lock(tmp_path: Path) -> None:
    """Somebody removed the first one's file by hand, and a second run has come."""
    second = Directory(tmp_path).held()
    with Directory(tmp_path).held():
        (tmp_path / "lock").unlink()
        second.__enter__()
    with pytest.raises(Busy), Directory(tmp_path).held():
        pass
    second.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_nobody_can_take(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.symlink_to(tmp_path / "gone" / "lock")
    refused = pytest.raises(PipelineError, match=r"/lock, which a run holds, cannot be taken: .* nowhere\. .*--data\.$")
    with refused, Directory(tmp_path).held():
        pass
    assert lock.is_symlink()
    lock.unlink()
    lock.mkdir()
    with pytest.raises(PipelineError, match="cannot be taken: Is a directory"), Directory(tmp_path).held():
        pass


def test_a_lock_that_always_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda file, how: (tmp_path / "lock").unlink())
    with pytest.raises(PipelineError, match="again and again"), Directory(tmp_path).held():
        pass


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(file: Any, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(PipelineError, match="cannot be taken: No locks available"), Directory(tmp_path).held():
        pass


def test_a_directory_that_cannot_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system refuses it to everybody but root, who runs tests too."""
    data, stat = tmp_path / "locked" / "x", Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path == data:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refused)
    said = r"/locked/x cannot be made: Permission denied\. Name another directory with --data\.$"
    with pytest.raises(PipelineError, match=said), Directory(data).held():
        pass


def test_a_checkpoint_keeps_its_id_until_it_is_forgotten(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    first = claimed(directory, REVENUE, "cluster-a")
    begin_a_batch(directory)
    assert claimed(directory, REVENUE, "cluster-a") == first
    assert directory.checkpoints == ["revenue"]
    directory.forget()
    assert directory.checkpoints == []
    # Tables remember batches by it, and the batches of a new checkpoint are others.
    assert claimed(directory, REVENUE, "cluster-a") != first


def test_what_is_forgotten_is_forgotten_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = Directory(tmp_path)
    first = claimed(directory, REVENUE, "cluster-a")
    begin_a_batch(directory)

    def killed(path: Path, ignore_errors: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(shutil, "rmtree", killed)
        directory.forget()
    assert directory.checkpoints == []
    assert claimed(directory, REVENUE, "cluster-a") != first
    directory.forget()
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_without_offsets_is_a_new_one(tmp_path: Path) -> None:
    """However they went, batches are counted from 0 again: under the old id the tables would take them for done."""
    directory = Directory(tmp_path)
    first = claimed(directory, REVENUE, "cluster-a")
    begin_a_batch(directory)
    (directory.checkpoint("revenue") / "commits").mkdir()
    (directory.checkpoint("revenue") / "offsets" / "0").unlink()
    assert claimed(directory, REVENUE, "cluster-a") != first
    assert [each.name for each in directory.checkpoint("revenue").iterdir()] == ["klamm.json"]


def test_an_output_that_is_new_begins_in_the_middle(tmp_path: Path) -> None:
    directory, table = Directory(tmp_path), Table("revenue", rows)
    plain = replace(REVENUE, outputs=(table,))
    assert claimed(directory, plain, "a").new_outputs == ()
    more = replace(plain, outputs=(table, Topic("revenue", rows)))
    # Nothing has been read so far, so nothing is missing.
    assert claimed(directory, more, "a").new_outputs == ()
    begin_a_batch(directory)
    most = replace(plain, outputs=(table, Topic("revenue", rows), Table("again", rows)))
    assert claimed(directory, most, "a").new_outputs == ("table again",)
    assert claimed(directory, most, "a").new_outputs == ()


def test_a_run_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    """What is new is told to the next run as well: in this one nobody has begun."""
    directory, table = Directory(tmp_path), Table("revenue", rows)
    directory.claimed(REVENUE, "a")
    assert list(tmp_path.iterdir()) == []
    claimed(directory, replace(REVENUE, outputs=(table,)), "a")
    begin_a_batch(directory)
    more = replace(REVENUE, outputs=(table, Table("again", rows)))
    assert directory.claimed(more, "a").new_outputs == ("table again",)
    assert directory.claimed(more, "a").new_outputs == ("table again",)


def test_a_table_that_somebody_removed(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    query = replace(REVENUE, outputs=(Table("revenue", rows), Table("new", rows), Topic("revenue", rows)))
    claimed(directory, replace(query, outputs=query.outputs[:1]), "a")
    begin_a_batch(directory)
    # Killed in its first batch: the table was not made yet.
    assert claimed(directory, replace(query, outputs=query.outputs[:1]), "a").missing_tables == ()
    (directory.checkpoint("revenue") / "commits").mkdir()
    (directory.checkpoint("revenue") / "commits" / "0").touch()
    claim = claimed(directory, query, "a")
    assert claim.missing_tables == ("table revenue",) and claim.new_outputs == ("table new", "topic revenue")
    queries: Any = SimpleNamespace(new_outputs={}, missing_tables={"revenue": claim.missing_tables})
    (told,) = surprises(queries, {}, directory)
    assert told.startswith("missing: table revenue. Query revenue has written to it before") and "--reset" in told
    Path(directory.table("revenue")).mkdir(parents=True)
    Path(directory.table("new")).mkdir()
    assert claimed(directory, query, "a").missing_tables == ()


def test_a_checkpoint_of_something_else(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    claimed(directory, REVENUE, "cluster-a")
    begin_a_batch(directory)
    with pytest.raises(Foreign, match=r"another cluster \(its id is cluster-a.*--bootstrap.*--data DIR.*--reset"):
        claimed(directory, REVENUE, "cluster-b")
    with pytest.raises(Foreign, match="has read orders so far and would now read returns"):
        claimed(directory, replace(REVENUE, sources=(Source("returns"),)), "cluster-a")
    with pytest.raises(Foreign, match=r"has changed: it kept Aggregate\(store.*--reset"):
        claimed(directory, replace(REVENUE, operators=("Aggregate(city string)",)), "cluster-a")


def test_functions_without_state_may_change(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    plain = replace(REVENUE, operators=(), mode="append")
    first = claimed(directory, plain, "a")
    begin_a_batch(directory)
    assert claimed(directory, replace(plain, mode="update"), "a") == first


def test_a_checkpoint_of_spark_s_own(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "revenue" / "offsets").mkdir(parents=True)
    with pytest.raises(Foreign, match="no `klamm pipeline run` has made"):
        claimed(Directory(tmp_path), REVENUE, "cluster-a")


def test_a_query_that_computes_something_else(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    before = replace(REVENUE, computes=("Aggregate [store], [sum(total)]",))
    claimed(directory, before, "cluster")
    (directory.checkpoint("revenue") / "offsets").mkdir()
    (directory.checkpoint("revenue") / "offsets" / "0").touch()
    claimed(directory, before, "cluster")
    with pytest.raises(Foreign, match="computes something else"):
        claimed(directory, replace(REVENUE, computes=("Aggregate [store], [max(total)]",)), "cluster")
