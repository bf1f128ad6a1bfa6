"""Kafka's own client with its own defaults, acks=all and idempotent, while brokers go and come back."""
# ruff: noqa: N802  (tests are named after the rows of the system)

from collections.abc import Callable
from typing import TypeAlias

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.cluster.java_stream import JavaStream

COUNT, A_SECOND, PARTITIONS = 6_000, 1_500, 3

Harm: TypeAlias = Callable[[Cluster, int], None]


@pytest.mark.parametrize("harm", [Cluster.kill, Cluster.stop], ids=["kill-9", "clean-stop"])
def test_S19_S21_S22_java_loses_and_doubles_nothing_while_a_broker_goes_and_comes_back(
    admin: Admin, cluster: Cluster, topic: str, harm: Harm
) -> None:
    """Broker 1 leads one partition and follows in two. The producer retries by itself and reports no failure, and the
    consumer, which reads all the while, sees each record once and in order."""
    admin.create(topic, "0:1:2,1:2:0,2:0:1")
    with JavaStream(cluster, topic, PARTITIONS, COUNT, A_SECOND) as stream:
        stream.wait_sent(1_000)
        harm(cluster, 1)
        stream.wait_sent(3_000)
        cluster.start(1)
        stream.wait_sent(4_000)
        stream.wait_end()

    assert stream.failed == {}
    assert sorted(stream.sent) == list(range(COUNT))
    assert stream.read == {number: [place] for number, place in stream.sent.items()}, "each once, where it was put"
    for partition in range(PARTITIONS):
        placed = [stream.sent[number] for number in range(partition, COUNT, PARTITIONS)]
        assert placed == [(partition, offset) for offset in range(COUNT // PARTITIONS)], "in the order they were sent"
    everybody = set(cluster.brokers)
    admin.wait_in_sync(topic, everybody, everybody, everybody)
    held = {tuple(sorted(parts.items())) for parts in admin.sizes(topic).values()}
    assert len(held) == 1, f"the replicas hold the same bytes: {held}"
