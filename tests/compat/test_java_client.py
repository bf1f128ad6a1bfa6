"""The Java client, the one Kafka is built with: the newest version of every request, five batches in flight."""
# ruff: noqa: N802  (tests are named after the rows of the system)

from collections import Counter

import pytest
from kafka.partitioner.default import murmur2

from tests.clients import DRIVERS
from tests.compat.java_client import JavaClient
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.proxy import CuttingProxy
from tests.harness.topics import create_topic
from tests.harness.workload import (
    CODECS,
    FIRST_TIMESTAMP_MS,
    Sent,
    assert_same,
    assert_stored_with,
    drawn_records,
    expected,
    odd_records,
)

PARTITIONS = 4


@pytest.fixture(scope="module")
def records() -> list[Sent]:
    return drawn_records(100_000, PARTITIONS)


@pytest.mark.parametrize("codec", CODECS)
def test_S1_what_the_java_client_produced_it_consumes_in_order_at_dense_offsets(
    node: Node, topic: str, java: JavaClient, records: list[Sent], codec: str
) -> None:
    """A hundred thousand records with each codec; the default producer is idempotent, so this one is."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    acknowledged = java.produce(node.bootstrap, topic, records, codec, idempotent=True)
    wanted = expected(records, PARTITIONS)
    assert_same(java.consume(node.bootstrap, topic, range(PARTITIONS)), wanted)
    for partition in range(PARTITIONS):
        offsets = [offset for offset, sent in zip(acknowledged, records, strict=True) if sent.partition == partition]
        assert offsets == list(range(len(wanted[partition])))
    assert_stored_with(node.dir, topic, range(PARTITIONS), codec)


@pytest.mark.parametrize("codec", CODECS)
def test_S23_java_and_python_clients_read_each_other(node: Node, topic: str, java: JavaClient, codec: str) -> None:
    create_topic(node.bootstrap, topic, 2)
    everything = []
    for turn, writer in enumerate((java, *DRIVERS)):
        records = drawn_records(1000, 2, seed=turn)
        writer.produce(node.bootstrap, topic, records, codec)
        everything += records
    for reader in (java, *DRIVERS):
        assert_same(reader.consume(node.bootstrap, topic, range(2)), expected(everything, 2))


def test_S23_every_client_reads_the_oddest_records_of_java(node: Node, topic: str, java: JavaClient) -> None:
    create_topic(node.bootstrap, topic, 1)
    java.produce(node.bootstrap, topic, odd_records(), "zstd")
    for reader in (java, *DRIVERS):
        assert_same(reader.consume(node.bootstrap, topic, [0]), expected(odd_records(), 1))


def test_S23_java_reads_from_any_offset_and_time(node: Node, topic: str, java: JavaClient) -> None:
    create_topic(node.bootstrap, topic, 1)
    records = drawn_records(1000, 1)
    java.produce(node.bootstrap, topic, records, "lz4")
    for start in (0, 1, 500, 999, 1000):
        assert java.consume(node.bootstrap, topic, [0], start)[0] == expected(records, 1)[0][start:]
    assert java.offset_for_time(node.bootstrap, topic, 0, FIRST_TIMESTAMP_MS + 500) == 500
    assert java.offset_for_time(node.bootstrap, topic, 0, FIRST_TIMESTAMP_MS + 1000) is None


def test_S3_java_and_murmur2_clients_choose_the_same_partition(node: Node, topic: str, java: JavaClient) -> None:
    create_topic(node.bootstrap, topic, 6)
    sent: list[tuple[bytes | None, bytes]] = [(b"key-%d" % number, b"") for number in range(200)]
    wanted = [(murmur2(key) & 0x7FFFFFFF) % 6 for key, _ in sent]
    for driver in (java, *DRIVERS):
        assert driver.produce_unplaced(node.bootstrap, topic, sent, "murmur2") == wanted


def test_S4_java_spreads_records_without_key(node: Node, topic: str, java: JavaClient) -> None:
    """It sticks to a partition for a batch and moves on with the next."""
    create_topic(node.bootstrap, topic, 4)
    sent: list[tuple[bytes | None, bytes]] = [(None, b"%03d" % number * 20) for number in range(999)]
    chosen = Counter(java.produce_unplaced(node.bootstrap, topic, sent, "murmur2"))
    found = java.consume(node.bootstrap, topic, range(4))
    assert {partition: len(held) for partition, held in found.items()} == chosen
    assert set(chosen) == set(range(4))


@pytest.mark.parametrize("seed", [1, 2])
def test_idempotent_java_producer_over_cut_connections(
    start_node: StartNode, topic: str, java: JavaClient, seed: int
) -> None:
    """Five batches of one partition are in flight when the connection goes: none is lost, doubled or out of order."""
    with CuttingProxy(seed) as proxy:
        node = start_node(advertise=proxy.address)
        proxy.connect_to(node.port)
        create_topic(node.bootstrap, topic, 1)
        proxy.start_cutting()
        records = [Sent(0, None, b"%08d" % number * 20, (), FIRST_TIMESTAMP_MS) for number in range(6000)]
        patience = ["retry.backoff.ms=10", "reconnect.backoff.ms=10", "reconnect.backoff.max.ms=100"]
        places = java.produce_with(node.bootstrap, topic, records, "batch.size=3000", "linger.ms=5", *patience)
        proxy.heal()
        assert places == [(0, offset) for offset in range(len(records))]
        assert_same(java.consume(node.bootstrap, topic, [0]), expected(records, 1))
        assert max(cut.in_flight for cut in proxy.cuts) >= 5, "the pipeline was never full"
