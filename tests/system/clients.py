"""What a client sees of a cluster and does to it: where partitions stand, what became of records, what can be read.

All of it through confluent-kafka, as an application would.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.waiting import wait_until

QUIET = {"log_level": 0}
"""Brokers die here on purpose; librdkafka would tell of each."""


class Place(NamedTuple):
    """Where a partition stands."""

    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


class Eyes:
    """A client that asks one broker, and no other: others may be dead or stand still."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 5000, **QUIET})

    def brokers(self) -> set[int]:
        return set(self._admin.list_topics(timeout=5).brokers)

    def racks(self) -> dict[int, str]:
        cluster = self._admin.describe_cluster(request_timeout=5).result(5)
        return {node.id: node.rack for node in cluster.nodes}

    def places(self, topic: str) -> list[Place]:
        """Of all partitions, in their order."""
        found = self._admin.list_topics(topic, timeout=5).topics[topic]
        assert found.error is None, found.error
        partitions = [found.partitions[number] for number in range(len(found.partitions))]
        return [Place(each.leader, tuple(each.replicas), frozenset(each.isrs)) for each in partitions]

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=5).topics)

    def create(
        self,
        topic: str,
        partitions: int = 1,
        replication: int = 3,
        replicas: Sequence[int] | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Placed by the cluster, or one partition on just these brokers."""
        if replicas is None:
            new = NewTopic(topic, partitions, replication, config=dict(config or {}))
        else:
            new = NewTopic(topic, 1, replica_assignment=[list(replicas)], config=dict(config or {}))
        self._admin.create_topics([new], request_timeout=10)[topic].result(10)

    def delete(self, topics: Sequence[str]) -> None:
        for gone in self._admin.delete_topics(list(topics), request_timeout=10).values():
            gone.result(10)


@dataclass(slots=True)
class Fate:
    """What a producer learned about a record it sent."""

    value: bytes
    offset: int | None = None
    error: KafkaError | None = None

    @property
    def is_open(self) -> bool:
        return self.offset is None and self.error is None

    @property
    def is_acknowledged(self) -> bool:
        return self.offset is not None


def _settings(given: Mapping[str, object]) -> dict[str, object]:
    """Python's names into the client's: `message_timeout_ms` is `message.timeout.ms`, callbacks keep theirs."""
    return {name if name.endswith("_cb") else name.replace("_", "."): value for name, value in given.items()}


class Writer:
    """A producer, and what became of all its records."""

    def __init__(self, bootstrap: str, acks: str, **more: object) -> None:
        basics = {"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 0}
        self._producer = Producer({**basics, **QUIET, **_settings(more)})
        self.acknowledged = 0
        """How many of its records are, so far."""

    def write(self, topic: str, *values: str, within_seconds: float = 20.0, partition: int = 0) -> list[Fate]:
        """Sent, and the fate of each of them known."""
        fates = self.send(topic, *values, partition=partition)
        left = self.wait(within_seconds)
        assert left == 0, f"of {left} records nothing is known after {within_seconds:.0f} s"
        return fates

    def write_safely(self, topic: str, *values: str, partition: int = 0) -> list[int]:
        """Sent, and all of them acknowledged; their offsets."""
        fates = self.write(topic, *values, partition=partition)
        assert all(fate.is_acknowledged for fate in fates), fates
        return [fate.offset for fate in fates if fate.offset is not None]

    def send(self, topic: str, *values: str, partition: int = 0) -> list[Fate]:
        fates = [Fate(value.encode()) for value in values]
        for fate in fates:
            self._producer.produce(topic, fate.value, partition=partition, on_delivery=self._noting(fate))
        self._producer.poll(0)
        return fates

    def wait(self, seconds: float) -> int:
        """Until the fate of all is known, at most so long; of how many it is not."""
        return self._producer.flush(seconds)

    def _noting(self, fate: Fate) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, message: Message) -> None:
            assert fate.is_open, "told once"
            fate.error, fate.offset = error, None if error else message.offset()
            self.acknowledged += fate.is_acknowledged

        return note


class Reader:
    """A consumer of one partition, from its beginning on."""

    def __init__(self, bootstrap: str, topic: str, partition: int = 0, **more: object) -> None:
        basics = {"bootstrap.servers": bootstrap, "group.id": "none-is-used", "enable.auto.commit": False}
        self._consumer = Consumer({**basics, "auto.offset.reset": "error", **QUIET, **_settings(more)})
        self._place = TopicPartition(topic, partition, 0)
        self._consumer.assign([self._place])

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def read(self, count: int, within_seconds: float = 20.0) -> list[str]:
        """The next so many values."""
        values: list[str] = []
        deadline = time.monotonic() + within_seconds
        while len(values) < count:
            values += self.read_some(0.1)
            assert time.monotonic() < deadline, f"{len(values)} of {count} records within {within_seconds:.0f} s"
        return values

    def read_some(self, seconds: float) -> list[str]:
        """What comes in that time, or sooner: often nothing."""
        message = self._consumer.poll(seconds)
        if message is None:
            return []
        problem = message.error()
        if problem is not None:
            raise KafkaException(problem)
        return [(message.value() or b"").decode()]

    def end(self) -> int:
        """Where what consumers may see ends: the high watermark, asked of the leader."""
        ends: list[int] = []

        def is_known() -> bool:
            try:
                ends.append(self._consumer.get_watermark_offsets(self._place, timeout=1, cached=False)[1])
            except KafkaException:
                return False
            return True

        wait_until(is_known, "the leader tells its end")
        return ends[-1]


def all_of(bootstrap: str, topic: str, partition: int = 0) -> list[str]:
    """Every value of a partition that a consumer can see now."""
    with Reader(bootstrap, topic, partition) as reader:
        return reader.read(reader.end())
