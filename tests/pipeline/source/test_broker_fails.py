"""Brokers die while their records are read: each offset comes once, in order, and nobody above notices."""

from collections.abc import Iterator

import pytest

import klamm
from klamm.ids import TopicPartition
from klamm.pipeline.kafka.access import RAW, opened
from klamm.pipeline.kafka.cluster import Cluster
from klamm.pipeline.kafka.fetching import Fetcher
from klamm.pipeline.kafka.offsets import EARLIEST, LATEST
from klamm.pipeline.kafka.problems import NoAnswer
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings, addresses
from tests.pipeline.source.topics import Topics

RECORDS = 4000


@pytest.fixture(scope="module")
def three() -> Iterator[klamm.Cluster]:
    with klamm.Cluster(brokers=3) as cluster:
        topics = Topics(cluster.bootstrap_servers)
        topics.create("orders", 1, 3)
        topics.write("orders", 0, [b"%d" % i for i in range(RECORDS)], batch_size="4000", acks="all")
        yield cluster


def test_the_leader_is_killed_while_we_read(three: klamm.Cluster) -> None:
    settings = ClusterSettings(addresses(three.bootstrap_servers), fetch_bytes=8000)
    access = opened(settings, RAW)
    try:
        seen = access.look(["orders"])
        leader = seen.topics["orders"].leaders[0]
        rows = access.rows(Range("orders", 0, 0, RECORDS, seen.topics["orders"].topic_id), False)
        offsets = next(rows).column("offset").to_pylist()
        assert 0 < len(offsets) < RECORDS / 2
        three.kill(leader)
        for batch in rows:
            offsets += batch.column("offset").to_pylist()
        assert offsets == list(range(RECORDS))
        assert access.look(["orders"]).topics["orders"].leaders[0] != leader
        # Whoever asks for offsets finds the new leader too.
        key = TopicPartition("orders", 0)
        assert access.offsets({key: EARLIEST}) | access.offsets({key: LATEST}) == {key: RECORDS}
    finally:
        access.close()
        three.start(leader)


def test_the_nearest_replica_is_read() -> None:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with klamm.Cluster(brokers=2, racks=2, settings=selector) as cluster:
        topics = Topics(cluster.bootstrap_servers)
        topics.create("near", 1, 2)
        topics.write("near", 0, [b"x"] * 50, acks="all")
        bootstrap = addresses(cluster.bootstrap_servers)
        leader = opened(ClusterSettings(bootstrap), RAW).look(["near"]).topics["near"].leaders[0]
        (near,) = [node for node in cluster.nodes if node.is_broker and node.node_id != leader]
        ours = Cluster(ClusterSettings(bootstrap, rack=near.rack or ""))
        fetcher = Fetcher(ours, Range("near", 0, 0, 50))
        (fetched,) = fetcher
        assert fetched.next_position == 50 and fetcher.replica == near.node_id
        # It is gone: the leader has the records too.
        fetcher = Fetcher(ours, Range("near", 0, 0, 50))
        cluster.kill(near.node_id)
        assert [fetched.next_position for fetched in fetcher] == [50]
        ours.close()


def test_patience_has_an_end() -> None:
    with klamm.Cluster(brokers=1) as cluster:
        topics = Topics(cluster.bootstrap_servers)
        topics.create("short")
        topics.write("short", 0, [b"%d" % i for i in range(1000)], batch_size="2000")
        settings = ClusterSettings(addresses(cluster.bootstrap_servers), fetch_bytes=2000, patience_seconds=0.3)
        access = opened(settings, RAW)
        rows = access.rows(Range("short", 0, 0, 1000), False)
        next(rows)
        cluster.kill(cluster.nodes[0].node_id)
        with pytest.raises(NoAnswer, match=r"short-0 0\.\.999: no broker gave these records .*Check the cluster"):
            list(rows)
        access.close()
