"""The cluster that is drawn: six brokers in two racks as processes of this machine, asked as any client asks.

How far a replica has got is read from its own files, because that is where the truth is, also while it stands still.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from struct import Struct

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from klamm.local.agreeing import Wish
from klamm.local.asking import Address
from klamm.local.cluster import LocalCluster
from klamm.local.view import ClusterSeen, PartitionSeen, cluster_seen

SETTINGS = {"replica.lag.time.max.ms": "4000", "broker.session.timeout.ms": "6000"}
"""A follower may be behind for four seconds: time enough to look at it."""
WAIT_SECONDS = 60.0
_batch = Struct(">qi11xi")
"""Of a batch's header: base offset, length, and how far its last record is from the first."""


class Live:
    def __init__(self, cluster: LocalCluster, bootstrap: str) -> None:
        self.cluster = cluster
        self.bootstrap = bootstrap

    def create(self, topic: str, partitions: int, replicas: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(WAIT_SECONDS)

    def seen(self, topic: str) -> ClusterSeen:
        record = self.cluster.record()
        running = [node for node, state in self.cluster.states() if node.is_broker and state == "running"]
        return cluster_seen([Address(record.host, node.port) for node in running], 10.0, [topic])

    def partition(self, topic: str, number: int = 0) -> PartitionSeen:
        return self.seen(topic).partitions[number]

    def produce(self, topic: str, values: Mapping[str, str], partition: int = -1, acks: str = "all") -> list[Message]:
        """One record a key, and what was answered, in that order."""
        answered: list[Message] = []

        def note(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            answered.append(message)

        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": acks, "linger.ms": 0})
        for key, value in values.items():
            producer.produce(topic, key=key, value=value, partition=partition, on_delivery=note)
        assert producer.flush(WAIT_SECONDS) == 0
        return answered

    def high_watermark(self, topic: str, partition: int = 0) -> int:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "pictures"})
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.close()
        return int(high)

    def log_end(self, broker: int, topic: str, partition: int = 0) -> int:
        """The offset behind the last record that this replica holds."""
        end = 0
        for path in sorted((self.cluster.directory / f"node-{broker}" / f"{topic}-{partition}").glob("*.log")):
            content, position = path.read_bytes(), 0
            while position + _batch.size <= len(content):
                base, length, last = _batch.unpack_from(content, position)
                position += 12 + length
                end = base + last + 1
        return end

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain: {what}"
            time.sleep(0.02)

    def wait_in_sync(self, topic: str) -> None:
        def everybody() -> bool:
            return not any(each.is_under_replicated for each in self.seen(topic).partitions)

        self.wait(f"all replicas of {topic} are in sync", everybody)

    def wait_as_placed(self, topic: str) -> None:
        """All in sync, and led by whom they were placed to be led: a broker that was paused or killed leads less."""

        def as_placed() -> bool:
            partitions = self.seen(topic).partitions
            return not any(each.is_under_replicated or each.leader != each.replicas[0] for each in partitions)

        self.wait(f"the preferred leaders of {topic} lead", as_placed)


@contextlib.contextmanager
def six_brokers() -> Iterator[Live]:
    with tempfile.TemporaryDirectory(prefix="klamm-pictures-") as directory:
        cluster = LocalCluster(Path(directory) / "cluster")
        record = cluster.up(Wish(6, 2, 0, SETTINGS))
        try:
            yield Live(cluster, record.bootstrap_servers)
        finally:
            cluster.kill(node.node_id for node in record.nodes)
