"""`--reset` says what goes and what stays, and nothing goes before everything else is right."""

import errno
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from klamm.pipeline import Pipeline, Source, Table, running, topics
from klamm.pipeline.keeping import Directory, application
from klamm.pipeline.loading import Loaded
from klamm.pipeline.problems import BadPipeline, PipelineError
from klamm.pipeline.queries import Wishes
from klamm.pipeline.resetting import Reset
from klamm.pipeline.running import Job, run
from klamm.pipeline.stopping import Interrupted
from klamm.pipeline.tables import job, open_table
from klamm.pipeline.tables.dropping import NotOurs
from tests.pipeline.tables import without_spark

COLUMNS = StructType().add("id", "string")


def sales(orders: Any) -> Any:
    return orders


def visits(orders: Any) -> Any:
    return orders


PIPELINE = Pipeline(
    "shop",
    sources=[Source("orders", json="id string")],
    outputs=[Table("sales", sales, key="id"), Table("visits", visits, format="parquet")],
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    """With what a run has left: a checkpoint, two tables, and a third that the pipeline has no more."""
    monkeypatch.setattr(job, "run", without_spark.run)
    found = Directory(tmp_path)
    found.checkpoint("orders").mkdir(parents=True)
    for name, kind, count in (("sales", "delta", 1200), ("visits", "parquet", 1), ("old", "delta", 3)):
        table = open_table(
            without_spark.session(2),
            found.table(name),
            format=kind,
            application=application("shop", "orders", name, "0123456789abcdef" * 2),
        )
        table.write(without_spark.rows_of([(str(number),) for number in range(count)], COLUMNS), 0)
    return found


def names(directory: Directory) -> list[str]:
    return sorted(path.name for path in directory.tables.iterdir())


def test_tables_stay_and_the_option_is_named(directory: Directory) -> None:
    said = Reset().announced(directory, PIPELINE)
    assert said.startswith(f"This forgets how far orders has read in {directory.path}")
    assert "The tables stay with their rows" in said and "--drop-tables removes" in said
    spoke: list[str] = []
    Reset().carry_out(directory, PIPELINE, spoke.append)
    assert spoke == ["forgotten: how far orders had read"]
    assert directory.checkpoints == [] and names(directory) == ["old", "sales", "visits"]
    assert Reset().announced(directory, PIPELINE) == "", "there is nothing more to forget"


def test_tables_go_and_are_named_with_their_rows(directory: Directory) -> None:
    reset = Reset(drops_tables=True)
    said = reset.announced(directory, PIPELINE)
    assert f"This removes from {directory.tables}: table sales (1,200 rows) and table visits (1 row)." in said
    assert "What else is there stays, since this pipeline does not write it: old." in said
    assert names(directory) == ["old", "sales", "visits"], "so far it has only been said"
    spoke: list[str] = []
    reset.carry_out(directory, PIPELINE, spoke.append)
    assert spoke == ["removed: table sales (1,200 rows) and table visits (1 row)", "forgotten: how far orders had read"]
    assert names(directory) == ["old"] and directory.checkpoints == []
    assert reset.announced(directory, PIPELINE) == ""


def test_tables_go_also_where_nothing_has_been_read(directory: Directory) -> None:
    """After a --reset without --drop-tables."""
    directory.forget()
    said = Reset(drops_tables=True).announced(directory, PIPELINE)
    assert said.startswith("This removes from ") and "table sales (1,200 rows)" in said


def test_all_or_nothing(directory: Directory) -> None:
    (directory.tables / "visits" / "notes.txt").touch()
    reset = Reset(drops_tables=True)
    with pytest.raises(NotOurs, match=r"notes\.txt"):
        reset.announced(directory, PIPELINE)
    with pytest.raises(NotOurs, match=r"notes\.txt"):
        reset.carry_out(directory, PIPELINE, print)
    assert names(directory) == ["old", "sales", "visits"] and directory.checkpoints == ["orders"]


@pytest.mark.parametrize("stuck", ["visits", "checkpoints"])
def test_all_or_nothing_also_once_it_has_begun(
    directory: Directory, stuck: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def refused(path: Path, target: Path) -> Path:
        if path.name == stuck:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    spoke: list[str] = []
    with pytest.raises(PipelineError, match=rf"/{stuck} cannot be moved away: Permission denied\. .*--data DIR"):
        Reset(drops_tables=True).carry_out(directory, PIPELINE, spoke.append)
    assert names(directory) == ["old", "sales", "visits"] and directory.checkpoints == ["orders"] and spoke == []


@pytest.fixture
def a_job(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Everything up to the plan is right."""

    @contextmanager
    def session(*ignored: object) -> Iterator[None]:
        yield

    cluster = topics.Cluster("a", 1, {"orders": 1, "orders.quarantine": 1})
    monkeypatch.setattr(topics, "seen", lambda *ignored: cluster)
    monkeypatch.setattr(running, "session", session)
    file = Loaded(Path("shop.py"), PIPELINE, ())
    return Job(file, directory, Wishes("127.0.0.1:1"), reset=Reset(drops_tables=True))


def test_a_mistake_in_the_file_costs_no_table(a_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def misspelt(*ignored: object) -> None:
        raise BadPipeline("there is no column totl")

    monkeypatch.setattr(running, "planned", misspelt)
    with pytest.raises(BadPipeline, match="totl"):
        run(a_job, lambda *ignored: None, print)
    assert names(a_job.directory) == ["old", "sales", "visits"] and a_job.directory.checkpoints == ["orders"]


def test_ctrl_c_before_it_begins_costs_no_table(a_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "planned", lambda *ignored: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted):
        run(a_job, lambda *ignored: None, print)
    assert names(a_job.directory) == ["old", "sales", "visits"] and a_job.directory.checkpoints == ["orders"]


@pytest.fixture
def missing_topic(a_job: Job, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Everything is right, and a topic that the pipeline writes is not there yet."""
    monkeypatch.setattr(topics, "seen", lambda *ignored: topics.Cluster("a", 1, {"orders": 1}))
    monkeypatch.setattr(running, "planned", lambda *ignored: SimpleNamespace(pipeline=PIPELINE, queries=()))
    return a_job


def test_nor_does_it_when_it_comes_while_topics_are_made(missing_topic: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "make", lambda *ignored: signal.raise_signal(signal.SIGINT))
    outcome = run(missing_topic, lambda *ignored: None, print)
    assert outcome.was_stopped and not outcome.standing.records
    directory = missing_topic.directory
    assert names(directory) == ["old", "sales", "visits"] and directory.checkpoints == ["orders"]


def test_a_topic_that_cannot_be_made_costs_no_table(missing_topic: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(new: list[topics.NewTopic], *ignored: object) -> None:
        raise topics.NoTopic(f"topic {new[0].name} could not be made")

    monkeypatch.setattr(topics, "make", refused)
    with pytest.raises(topics.NoTopic, match=r"orders\.quarantine could not be made"):
        run(missing_topic, lambda *ignored: None, print)
    directory = missing_topic.directory
    assert names(directory) == ["old", "sales", "visits"] and directory.checkpoints == ["orders"]


def test_ctrl_c_while_topics_are_made_costs_no_table(missing_topic: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "make", lambda *ignored: signal.raise_signal(signal.SIGINT))
    assert run(missing_topic, lambda *ignored: None, print).was_stopped
    directory = missing_topic.directory
    assert names(directory) == ["old", "sales", "visits"] and directory.checkpoints == ["orders"]


def test_no_topic_is_made_where_a_table_is_not_ours(missing_topic: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """For then nothing was changed, as is said."""
    made: list[object] = []
    monkeypatch.setattr(topics, "make", lambda new, *ignored: made.extend(new))
    (missing_topic.directory.tables / "visits" / "notes.txt").touch()
    with pytest.raises(NotOurs, match="nothing was changed"):
        run(missing_topic, lambda *ignored: None, print)
    assert made == []
