"""Queries that end, fail, and are started again, without Spark: what is told of them, and what is not forgotten."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from klamm.pipeline import queries
from klamm.pipeline.declaration import Pipeline, Source, Table
from klamm.pipeline.keeping import Directory
from klamm.pipeline.planning import Plan, PlannedQuery
from klamm.pipeline.queries import MOST_RESTARTS, Queries, Wishes, _Running
from klamm.pipeline.writing import Done

PASSING = RuntimeError("Python worker failed to connect back")


def rows(orders: Any) -> Any:
    return orders


class Query:
    """As much of Spark's as is looked at."""

    def __init__(self) -> None:
        self.isActive = True
        self.status = {"isTriggerActive": False, "message": "Waiting for data to arrive"}
        self.recentProgress: list[Any] = []
        self.problem: Exception | None = None
        self.was_stopped = False

    def exception(self) -> Exception | None:
        return self.problem

    def stop(self) -> None:
        self.was_stopped, self.isActive = True, False

    def end(self, problem: Exception | None = None) -> None:
        self.isActive, self.problem = False, problem

    def report(self, number: int) -> None:
        said = {"timestamp": f"t{number}", "batchId": number, "numInputRows": 1}
        self.recentProgress = [*self.recentProgress, SimpleNamespace(json=json.dumps(said))][-3:]


class Watched(Queries):
    """Whose queries are started by nobody."""

    def __init__(self, path: Path, *names: str) -> None:
        pipeline = Pipeline(name="shop", sources=[Source(name) for name in names], outputs=[Table("all", rows)])
        planned = tuple(PlannedQuery(name, (Source(name),), (), None) for name in names)
        spark: Any = None
        super().__init__(spark, Plan(pipeline, planned, {}, ()), Directory(path), "cluster", Wishes("nowhere"))
        self.made: list[Query] = []
        self.refusals: list[Exception] = []
        self.start()

    def _started(self, query: PlannedQuery, restarts: int) -> _Running:
        if self.refusals:
            raise self.refusals.pop()
        self.made.append(Query())
        made: Any = self.made[-1]
        writer: Any = SimpleNamespace(query=query, failure=None, done={}, begun=Done(), at=None)
        return _Running(made, writer, restarts)

    def finish(self, batch: int) -> None:
        """A batch of the one query there is."""
        self._running["orders"].writer.done[batch] = Done()
        self.made[-1].report(batch)


def test_what_fails_while_the_run_is_being_stopped_has_failed(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "orders", "returns")
    problem = ValueError("the disk is full")
    watched.made[0].end(problem)
    watched.stop()
    assert watched.failure == ("orders", problem)
    assert watched.made[1].was_stopped


def test_nor_is_it_forgotten_while_spark_ends_the_query(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "orders")
    problem = watched._running["orders"].writer.failure = ValueError("the disk is full")
    watched.stop()
    assert watched.failure == ("orders", problem)


@pytest.mark.parametrize("problem", [None, PASSING])
def test_what_ends_well_or_would_be_started_again_has_not(tmp_path: Path, problem: Exception | None) -> None:
    watched = Watched(tmp_path, "orders")
    watched.made[0].end(problem)
    watched.stop()
    watched.poll()
    assert watched.failure is None and len(watched.made) == 1


def test_what_spark_says_of_a_query_that_was_stopped_is_no_failure(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "orders")
    watched.made[0].problem = RuntimeError("klamm.pipeline.writing.Stopped")
    watched.stop()
    watched.poll()
    assert watched.failure is None


def test_restarts_are_counted_from_the_last_batch_that_was_written(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "orders")
    for turn in range(3 * MOST_RESTARTS):
        watched.finish(turn)
        watched.made[-1].end(PASSING)
        watched.poll()
    assert watched.failure is None and len(watched.made) == 1 + 3 * MOST_RESTARTS
    for _ in range(MOST_RESTARTS):
        watched.made[-1].end(PASSING)
        watched.poll()
    assert watched.failure == ("orders", PASSING)


def test_the_old_one_may_still_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "RESTART_SECONDS", 0.0)
    watched = Watched(tmp_path, "orders")
    name = "Cannot start query with name shop.orders as a query with that name is already active in this SparkSession"
    watched.refusals = [RuntimeError(name)] * 2
    watched.made[-1].end(PASSING)
    watched.poll()
    assert len(watched.made) == 2 and watched.failure is None


def test_reports_are_noted_once_and_not_remembered_for_ever(tmp_path: Path) -> None:
    watched = Watched(tmp_path, "orders")
    for number in range(10):
        watched.finish(number)
        assert watched.poll() == ["orders"]
        assert watched.poll() == []
    assert watched.standing.queries["orders"].batches == 10
    assert len(watched._running["orders"].seen) == 3
