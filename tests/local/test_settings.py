"""Settings of real sockets and real disks, with other values than their defaults."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

import klamm
from klamm.config import BrokerConfig
from klamm.runtime.files import RealFiles
from klamm.runtime.process import limits_of
from tests.local.clients import read
from tests.local.several import needs_several_nodes

PATIENCE = 10.0


@contextmanager
def connected(bootstrap: str) -> Iterator[socket.socket]:
    host, _, port = bootstrap.rpartition(":")
    with closing(socket.create_connection((host, int(port)), timeout=PATIENCE)) as sock:
        yield sock


def is_kept(sock: socket.socket) -> bool:
    """Whether the node did not close it: it answers ApiVersions (version 0), whose key is 18."""
    try:
        sock.sendall(bytes.fromhex("0000000a00120000000000010000"))
        return bool(sock.recv(4))
    except ConnectionError:
        return False


def kept_of(bootstrap: str, count: int) -> int:
    """How many connections the node holds of so many, all open at once."""
    with ExitStack() as stack:
        return sum(is_kept(stack.enter_context(connected(bootstrap))) for _ in range(count))


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"max.connections": "2"}, 2),
        ({"max.connections.per.ip": "2"}, 2),
        ({"max.connections.per.ip": "2", "max.connections.per.ip.overrides": "127.0.0.1:4"}, 4),
        ({"max.connections.per.ip.overrides": "localhost:3, 10.0.0.1:1"}, 3),
        ({"max.connections.per.ip.overrides": "10.0.0.1:1"}, 6),
    ],
)
def test_so_many_connections_are_held(settings: dict[str, str], kept: int) -> None:
    with klamm.Cluster(brokers=1, settings=settings) as cluster:
        assert kept_of(cluster.bootstrap_servers, 6) == kept


@pytest.mark.parametrize("setting", ["max.connections", "max.connections.per.ip"])
def test_limits_of_connections_are_altered_while_the_node_runs(setting: str) -> None:
    """They were said to be, and only a restart changed anything."""
    with klamm.Cluster(brokers=1) as cluster:
        assert kept_of(cluster.bootstrap_servers, 12) == 12
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        entry = ConfigEntry(setting, "8", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
        for altered in admin.incremental_alter_configs([resource]).values():
            altered.result(PATIENCE)
        assert kept_of(cluster.bootstrap_servers, 12) <= 8


def test_requests_may_take_so_much_room(tmp_path: Path) -> None:
    """What is then done with that room is told by tests/runtime/test_room.py."""
    config = BrokerConfig.from_properties([], {"node.id": "0", "queued.max.request.bytes": "200000000"})
    assert limits_of(config, RealFiles(tmp_path)).unfinished_bytes == 200_000_000
    assert (
        limits_of(BrokerConfig.from_properties([], {"node.id": "0"}), RealFiles(tmp_path)).unfinished_bytes == 64 << 20
    )


# Flushing.


@pytest.mark.parametrize("brokers", [1, pytest.param(3, marks=needs_several_nodes)])
@pytest.mark.parametrize(
    ("configs", "settings"), [({"flush.ms": "20"}, {}), ({}, {"log.flush.interval.ms": "20"}), ({"flush.ms": "0"}, {})]
)
def test_topics_that_are_flushed_in_time_serve_while_some_partitions_are_empty(
    brokers: int, configs: dict[str, str], settings: dict[str, str]
) -> None:
    """The flush of an empty partition took all of them offline, after every restart again."""
    with klamm.Cluster(brokers=brokers, settings=settings) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topics = [NewTopic("timed", 2, config=configs), NewTopic("safe", 1, config={"flush.messages": "1"})]
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE)
        for number in range(4):
            write_each(cluster.bootstrap_servers, ("timed", "safe"), 5)
            if number == 1:
                for node in cluster.brokers:
                    cluster.stop(node)
                cluster.start(*cluster.brokers)
        assert len(read(cluster.bootstrap_servers, "timed", 20)) == 20


def write_each(bootstrap: str, topics: tuple[str, ...], count: int) -> None:
    """To the first partition, one after the other, so that flushes come in between."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": PATIENCE * 1000})
    answers: list[object] = []
    for number in range(count):
        for topic in topics:
            producer.produce(topic, b"%d" % number, partition=0, on_delivery=lambda error, _: answers.append(error))
        assert producer.flush(PATIENCE) == 0
    assert answers == [None] * len(topics) * count
