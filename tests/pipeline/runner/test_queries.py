"""A pipeline on a cluster: outputs without state, one with windows, a topic, quarantine; and on from where it was."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import klamm
from klamm.pipeline import register, topics
from klamm.pipeline.causes import paragraph
from klamm.pipeline.keeping import Directory
from klamm.pipeline.loading import Loaded, loaded
from klamm.pipeline.planning import planned
from klamm.pipeline.problems import BadPipeline
from klamm.pipeline.progress import Standing
from klamm.pipeline.queries import Queries, Wishes, new_columns
from klamm.pipeline.running import surprises
from tests.pipeline.runner.shop import FILE, expected
from tests.pipeline.runner.world import check_tables, make_topic, produce, rows, values_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG_SECONDS = 240.0
FIRST, MORE = 800, 300


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with klamm.Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


def run_once(spark: "SparkSession", file: Loaded, data: Path, servers: str) -> Standing:
    cluster = topics.seen(servers, {})
    topics.make(topics.missing(file.pipeline, cluster), servers, {})
    queries = Queries(
        spark, planned(spark, file.pipeline), Directory(data), cluster.cluster_id, Wishes(servers, once=True)
    )
    queries.start()
    until = time.monotonic() + LONG_SECONDS
    while not queries.is_over:
        assert time.monotonic() < until
        queries.poll()
        time.sleep(0.1)
    assert queries.failure is None, paragraph(queries.failure[1])
    queries.poll()
    queries.stop()
    return queries.standing


def check_that_columns_are_compared(spark: "SparkSession", place: Path, data: Path, servers: str) -> None:
    """Before anything is read: who removes a column is told, and who adds one."""
    for name, columns, said in (
        ("more", '"total", "gross", "at", f.lit(1).alias("one")', "table orders gets a new column: one."),
        ("less", '"total", "at"', "gross is missing in the rows"),
    ):
        (place / f"{name}.py").write_text(FILE.replace('"total", "gross", "at"', columns))
        plan = planned(spark, loaded(place / f"{name}.py").pipeline)
        queries = Queries(spark, plan, Directory(data), topics.seen(servers, {}).cluster_id, Wishes(servers, once=True))
        try:
            told = "\n".join(surprises(queries, new_columns(spark, plan, Directory(data)), Directory(data)))
        except BadPipeline as problem:
            told = str(problem)
        assert said in told


def test_every_record_once_and_on_from_there(spark: "SparkSession", servers: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FILE)
    file, data = loaded(tmp_path / "shop.py"), tmp_path / "data"
    register(spark)
    file.send_by_value()

    produce(servers, 0, FIRST)
    standing = run_once(spark, file, data, servers)
    check_tables(data, FIRST)
    wanted = expected(FIRST)
    assert standing.records == FIRST and standing.quarantined == wanted.quarantined
    assert standing.done.added["table orders"] == len(wanted.ids)
    assert not sum(standing.queries["orders"].lag.values())

    check_that_columns_are_compared(spark, tmp_path, data, servers)
    produce(servers, FIRST, MORE)
    standing = run_once(spark, file, data, servers)
    assert standing.records == MORE
    check_tables(data, FIRST + MORE)
    assert sum(row["orders"] for row in rows(data, "revenue")) == FIRST + MORE - expected(FIRST + MORE).quarantined
    quarantined = values_in(servers, "orders.quarantine")
    assert len(quarantined) == expected(FIRST + MORE).quarantined
    kept = {(row["value"], row["reason"]) for row in rows(data, "orders_quarantine")}
    assert {(value, headers["reason"].decode()) for value, headers in quarantined} == kept
    assert len(values_in(servers, "revenue")) == standing.done.added["topic revenue"] + 5
