"""One session with both formats, and one small cluster with a topic for every peculiarity."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import klamm
from tests.compat.spark.both import Both
from tests.compat.spark.connector import connected_session
from tests.compat.spark.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The records are of the year 2023: they must not be too old to be kept.
SETTINGS = {"log.cleaner.backoff.ms": "200", "log.retention.ms": "-1"}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    session = connected_session({"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def world(spark: "SparkSession") -> Iterator[World]:
    with klamm.Cluster(brokers=1, settings=SETTINGS) as cluster:
        made = World(cluster.bootstrap_servers)
        made.fill()
        yield made


@pytest.fixture
def both(spark: "SparkSession", world: World, tmp_path: Path) -> Both:
    return Both(spark, world.bootstrap, tmp_path)
