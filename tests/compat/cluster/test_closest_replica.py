"""Fetch from the closest replica (KIP-392) with Kafka's own consumer: two racks, and a reader in each."""

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.cluster.java_stream import JavaStream

COUNT, A_SECOND = 1_000, 1_000
MANY_BYTES = 100_000
"""Half of a thousand records. Metadata and empty answers are far less."""


@pytest.mark.parametrize(("rack", "read_from"), [("R1", 0), ("R2", 2), ("R3", 0), (None, 0)])
def test_a_consumer_reads_from_its_own_rack(
    racks_admin: Admin, two_racks: Cluster, topic: str, rack: str | None, read_from: int
) -> None:
    """Broker 0 leads, 2 follows in the other rack. Who is in neither rack reads from the leader."""
    racks_admin.create(topic, "0:2")
    settings = [f"consumer.client.rack={rack}"] if rack else []
    with JavaStream(two_racks, topic, 1, COUNT, A_SECOND, "producer.linger.ms=0", *settings) as stream:
        stream.wait_end()
    assert stream.read == {number: [(0, number)] for number in range(COUNT)}
    (most,) = [broker for broker, size in stream.bytes_from.items() if size > MANY_BYTES]
    assert most == read_from, stream.bytes_from


def test_a_consumer_goes_back_to_the_leader_when_its_own_replica_is_gone(
    racks_admin: Admin, two_racks: Cluster, topic: str
) -> None:
    racks_admin.create(topic, "0:2", min_insync_replicas="1")
    with JavaStream(two_racks, topic, 1, 4 * COUNT, A_SECOND, "consumer.client.rack=R2") as stream:
        stream.wait_sent(COUNT)
        two_racks.kill(2)
        stream.wait_end()
    assert stream.failed == {} and stream.read == {number: [(0, number)] for number in range(4 * COUNT)}
    assert stream.bytes_from[2] > MANY_BYTES and stream.bytes_from[0] > MANY_BYTES
