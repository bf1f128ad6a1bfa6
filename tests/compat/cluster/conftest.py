"""One cluster of three brokers for all tests of this directory; each leaves it whole."""

from collections.abc import Iterator

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.compat.java_tools import JavaTools

# Leaders stay where a test put them, and come back when a tool says so.
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "num.partitions": "3",
}


@pytest.fixture(scope="session")
def three_brokers(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = started_cluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=SETTINGS)
    yield running
    running.close()


@pytest.fixture
def cluster(three_brokers: Cluster) -> Iterator[Cluster]:
    yield three_brokers
    three_brokers.start_all()


@pytest.fixture
def admin(tools: JavaTools, cluster: Cluster) -> Admin:
    return Admin(tools, cluster)
