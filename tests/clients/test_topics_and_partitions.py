"""Topics as clients see them: their partitions, the defaults of those not given, and who leads them."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import asyncio

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.clients import DRIVERS
from tests.clients.driver import Driver
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.topics import create_topic, wait_usable
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent, assert_same, expected

each_client = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)


@pytest.mark.parametrize("partitions", [1, 12])
def test_S1_a_topic_has_one_or_many_partitions_each_with_its_own_offsets(
    node: Node, topic: str, partitions: int
) -> None:
    """Partition p gets p + 1 records, one after the other over all partitions: each counts from 0 without a gap."""
    create_topic(node.bootstrap, topic, partitions)
    records = [
        Sent(partition, b"key", b"%d" % turn, (), FIRST_TIMESTAMP_MS)
        for turn in range(partitions)
        for partition in range(partitions)
        if turn <= partition
    ]
    driver = DRIVERS[0]
    driver.produce(node.bootstrap, topic, records)
    found = driver.consume(node.bootstrap, topic, range(partitions))
    assert_same(found, expected(records, partitions))
    assert [len(found[partition]) for partition in range(partitions)] == list(range(1, partitions + 1))


@each_client
def test_S2_record_lands_in_given_partition(node: Node, topic: str, driver: Driver) -> None:
    """Whatever its key would have chosen."""
    create_topic(node.bootstrap, topic, 5)
    records = [Sent(number % 5, b"same key", b"%d" % number, (), FIRST_TIMESTAMP_MS) for number in range(50)]
    driver.produce(node.bootstrap, topic, records)
    assert_same(driver.consume(node.bootstrap, topic, range(5)), expected(records, 5))


def test_S5_partitions_and_replicas_not_given_are_one(node: Node, topic: str) -> None:
    create_topic(node.bootstrap, topic)
    assert _replicas(node.bootstrap, topic) == {0: [0]}


def test_S5_partitions_not_given_are_num_partitions(start_node: StartNode) -> None:
    """For a topic that is created, and for one that comes into being because a producer names it."""
    node = start_node({"num.partitions": "3", "default.replication.factor": "1"})
    create_topic(node.bootstrap, "created")
    assert _replicas(node.bootstrap, "created") == {0: [0], 1: [0], 2: [0]}
    for driver in DRIVERS:
        name = f"named-by-{driver.name}"
        driver.produce_unplaced(node.bootstrap, name, [(b"key", b"value")], "murmur2")
        assert _replicas(node.bootstrap, name) == {0: [0], 1: [0], 2: [0]}


def test_S5_no_topic_comes_into_being_where_that_is_switched_off(start_node: StartNode) -> None:
    node = start_node({"auto.create.topics.enable": "false"})
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    assert admin.list_topics("nobody-made-this", timeout=10).topics["nobody-made-this"].error is not None
    assert "nobody-made-this" not in admin.list_topics(timeout=10).topics


def test_S11_confluent_learns_leader_replicas_and_in_sync_replicas(node: Node, topic: str) -> None:
    create_topic(node.bootstrap, topic, 3)
    cluster = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=10)
    assert {f"{broker.host}:{broker.port}" for broker in cluster.brokers.values()} == {node.bootstrap}
    assert cluster.controller_id == 0 and cluster.cluster_id
    for partition in cluster.topics[topic].partitions.values():
        assert (partition.leader, partition.replicas, partition.isrs) == (0, [0], [0])


def test_S11_kafka_python_learns_leader_replicas_and_in_sync_replicas(node: Node, topic: str) -> None:
    create_topic(node.bootstrap, topic, 3)
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    try:
        described = admin.describe_topics([topic])
    finally:
        admin.close()
    partitions = described[topic]["partitions"] if isinstance(described, dict) else described[0]["partitions"]
    seen = sorted((p["partition_index"], p["leader_id"], p["replica_nodes"], p["isr_nodes"]) for p in partitions)
    assert seen == [(number, 0, [0], [0]) for number in range(3)]


def test_S11_aiokafka_learns_leader_replicas_and_in_sync_replicas(node: Node, topic: str) -> None:
    create_topic(node.bootstrap, topic, 3)

    async def describe() -> list[tuple[int, int, list[int], list[int]]]:
        admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
        await admin.start()
        try:
            (described,) = await admin.describe_topics([topic])
        finally:
            await admin.close()
        return sorted((p["partition"], p["leader"], p["replicas"], p["isr"]) for p in described["partitions"])

    assert asyncio.run(describe()) == [(number, 0, [0], [0]) for number in range(3)]


def _replicas(bootstrap: str, topic: str) -> dict[int, list[int]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wait_usable(admin, topic)
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return {number: partition.replicas for number, partition in partitions.items()}
