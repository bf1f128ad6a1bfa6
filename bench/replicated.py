"""Topics of three replicas on a cluster: created, seen in sync, filled, counted, deleted; and the cluster's start.

The raw client asks one broker after the other until one does it, so nobody waits for a library's back-off; what needs
to be known about leaders and replicas, librdkafka's admin client asks.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from bench import raw
from bench.batch import record_batch, records_that_fit
from bench.clusters import NODES, Cluster
from bench.start import StartError

MIN_IN_SYNC = (("min.insync.replicas", "2"),)
ALL = -1
SILENT = 0
IN_FLIGHT = 5
RETRY_SECONDS = 0.002
GIVE_UP_SECONDS = 120.0


class Replicas(NamedTuple):
    """Of one partition: the leader's id (-1: none) and how many are in sync."""

    leader: int
    in_sync: int


def started(cluster: Cluster) -> float:
    """Seconds from spawning three processes to a record acknowledged with acks=all in a topic with three replicas."""
    begin = time.perf_counter()
    cluster.start()
    create(cluster, "first", 1)
    request = raw.produce_frame("first", [0], record_batch(100, 1, int(time.time() * 1000)), acks=ALL)
    _until_one_does(cluster, lambda connection: raw.checked_produce(connection.ask(request)))
    return time.perf_counter() - begin


def create(cluster: Cluster, topic: str, partitions: int) -> None:
    def ask(connection: raw.Connection) -> None:
        try:
            raw.create_topics(connection, [(topic, partitions)], NODES, MIN_IN_SYNC)
        except raw.RefusedError as refusal:
            if refusal.code != raw.TOPIC_ALREADY_EXISTS:
                raise

    _until_one_does(cluster, ask)


def admin_of(cluster: Cluster) -> AdminClient:
    """It would report on the terminal when its cluster is taken away."""
    return AdminClient({"bootstrap.servers": cluster.address, "log_level": SILENT})


def wait_in_sync(admin: AdminClient, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        states = described(admin, topic).values()
        if len(states) == partitions and all(state.in_sync == NODES and state.leader >= 0 for state in states):
            return
        time.sleep(RETRY_SECONDS)
    raise StartError(f"{topic} never had all its replicas in sync")


def described(admin: AdminClient, topic: str) -> dict[int, Replicas]:
    found = admin.list_topics(topic, timeout=GIVE_UP_SECONDS).topics[topic].partitions
    return {partition: Replicas(state.leader, len(state.isrs)) for partition, state in found.items()}


def bytes_per_record(cluster: Cluster, admin: AdminClient, topic: str) -> float:
    """On one replica's disk, batch headers included, once nobody produces and the followers have everything."""
    stored = -1
    while stored != (stored := cluster.stored_bytes(topic)):
        time.sleep(0.05)
    consumer = Consumer({"bootstrap.servers": cluster.address, "group.id": "bench", "log_level": SILENT})
    partitions = [TopicPartition(topic, partition) for partition in described(admin, topic)]
    records = sum(consumer.get_watermark_offsets(partition, GIVE_UP_SECONDS)[1] for partition in partitions)
    consumer.close()
    return stored / max(1, records)


def fill(cluster: Cluster, admin: AdminClient, topic: str, record_bytes: int, batch_bytes: int, total: int) -> None:
    """To each leader, requests that hold a batch for every partition it leads, five in flight."""
    batch = record_batch(record_bytes, records_that_fit(record_bytes, batch_bytes), int(time.time() * 1000))
    partitions = described(admin, topic)
    requests = max(2, total // (len(batch) * len(partitions)))
    for number, node in enumerate(cluster.nodes):
        led = [partition for partition, state in partitions.items() if state.leader == number]
        if led:
            _push(node.port, raw.produce_frame(topic, led, batch, acks=ALL), requests)


def delete(admin: AdminClient, topic: str) -> None:
    for deleted in admin.delete_topics([topic], operation_timeout=30).values():
        deleted.result()


def _push(port: int, frame: bytes, requests: int) -> None:
    connection = raw.Connection(port)
    _until_accepted(connection, frame)
    for index in range(1, requests):
        connection.send(frame)
        if index > IN_FLIGHT:
            raw.checked_produce(connection.receive())
    for _ in range(min(requests - 1, IN_FLIGHT)):
        raw.checked_produce(connection.receive())
    connection.close()


def _until_accepted(connection: raw.Connection, frame: bytes) -> None:
    """A leader in the metadata may not have taken up its work yet."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            raw.checked_produce(connection.ask(frame))
            return
        except raw.RefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)


def _until_one_does(cluster: Cluster, ask: Callable[[raw.Connection], object]) -> None:
    """One broker after the other: not all may listen yet, know the topic, or lead it."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        for node in cluster.nodes:
            try:
                connection = raw.Connection(node.port)
                try:
                    ask(connection)
                    return
                finally:
                    connection.close()
            except (OSError, raw.RefusedError):
                if not node.is_running():
                    raise StartError(f"{node.command[0]} ended; its output ends: {node.last_output()}") from None
        time.sleep(RETRY_SECONDS)
    raise StartError(f"nothing within {GIVE_UP_SECONDS:.0f} s; the output ends: {cluster.last_output()}")
