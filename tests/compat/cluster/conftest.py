"""A cluster of three brokers and one of four in two racks, for all tests of this directory; each leaves it whole."""

from collections.abc import Iterator

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.compat.java_tools import JavaTools

# Leaders stay where a test put them, and come back when a tool says so.
WHERE_THEY_ARE = {"auto.leader.rebalance.enable": "false"}
OF_THREE = {
    **WHERE_THEY_ARE,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "num.partitions": "3",
}


@pytest.fixture(scope="session")
def three_brokers(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = started_cluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=OF_THREE)
    yield running
    running.close()


@pytest.fixture
def cluster(three_brokers: Cluster) -> Iterator[Cluster]:
    yield three_brokers
    three_brokers.start_all()


@pytest.fixture
def admin(tools: JavaTools, cluster: Cluster) -> Admin:
    return Admin(tools, cluster)


@pytest.fixture(scope="session")
def four_brokers(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {
        **WHERE_THEY_ARE,
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    running = started_cluster(tmp_path_factory.mktemp("racks") / "cluster", brokers=4, racks=2, settings=settings)
    yield running
    running.close()


@pytest.fixture
def two_racks(four_brokers: Cluster) -> Iterator[Cluster]:
    """Brokers 0 and 1 in rack R1, 2 and 3 in R2."""
    yield four_brokers
    four_brokers.start_all()


@pytest.fixture
def racks_admin(tools: JavaTools, two_racks: Cluster) -> Admin:
    return Admin(tools, two_racks)
