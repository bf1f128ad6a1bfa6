"""One small cluster for all that only reads and writes topics of its own."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import klamm
from klamm.pipeline.registration import register
from tests.pipeline.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster() -> Iterator[klamm.Cluster]:
    with klamm.Cluster(brokers=1) as opened:
        yield opened


@pytest.fixture
def topics(cluster: klamm.Cluster) -> Topics:
    return Topics(cluster.bootstrap_servers)


@pytest.fixture
def reading(spark: "SparkSession") -> "SparkSession":
    register(spark)
    return spark
