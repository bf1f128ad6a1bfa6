"""Fetch from the closest replica (KIP-392) with Kafka's own consumer: two racks, and a reader in each."""

from collections.abc import Iterator

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.compat.cluster.java_stream import JavaStream
from tests.compat.java_tools import JavaTools

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
COUNT, A_SECOND = 1_000, 1_000
MANY_BYTES = 100_000
"""Half of a thousand records. Metadata and empty answers are far less."""


@pytest.fixture(scope="module")
def two_racks(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers 0 and 1 in rack R1, 2 and 3 in R2."""
    settings = {"replica.selector.class": RACK_AWARE, "auto.leader.rebalance.enable": "false"}
    running = started_cluster(tmp_path_factory.mktemp("racks") / "cluster", brokers=4, racks=2, settings=settings)
    yield running
    running.close()


@pytest.fixture
def admin(tools: JavaTools, two_racks: Cluster) -> Admin:
    return Admin(tools, two_racks)


@pytest.mark.parametrize(("rack", "read_from"), [("R1", 0), ("R2", 2), ("R3", 0), (None, 0)])
def test_a_consumer_reads_from_its_own_rack(
    admin: Admin, two_racks: Cluster, topic: str, rack: str | None, read_from: int
) -> None:
    """Broker 0 leads, 2 follows in the other rack. Who is in neither rack reads from the leader."""
    admin.create(topic, "0:2")
    settings = [f"consumer.client.rack={rack}"] if rack else []
    with JavaStream(two_racks, topic, 1, COUNT, A_SECOND, "producer.linger.ms=0", *settings) as stream:
        stream.wait_end()
    assert stream.read == {number: [(0, number)] for number in range(COUNT)}
    (most,) = [broker for broker, size in stream.bytes_from.items() if size > MANY_BYTES]
    assert most == read_from, stream.bytes_from


def test_a_consumer_goes_back_to_the_leader_when_its_own_replica_is_gone(
    admin: Admin, two_racks: Cluster, topic: str
) -> None:
    admin.create(topic, "0:2", min_insync_replicas="1")
    with JavaStream(two_racks, topic, 1, 4 * COUNT, A_SECOND, "consumer.client.rack=R2") as stream:
        stream.wait_sent(COUNT)
        two_racks.kill(2)
        stream.wait_sent(2 * COUNT)
        stream.wait_end()
    two_racks.start(2)
    assert stream.failed == {} and stream.read == {number: [(0, number)] for number in range(4 * COUNT)}
    assert stream.bytes_from[2] > MANY_BYTES and stream.bytes_from[0] > MANY_BYTES
