"""Groups for tests of the command line: members that really read, and offsets that somebody has committed."""

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from klamm.cli.group_asking import COORDINATOR_MOVING
from tests.harness.waiting import wait_until

PROTOCOLS = ("classic", "consumer")


class Member:
    """A consumer in a thread of its own that polls, reads and commits nothing, until it is told to leave."""

    def __init__(self, bootstrap: str, group: str, topics: Sequence[str], settings: Mapping[str, object]) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
            }
        )
        self._consumer.subscribe(list(topics))
        self._leaves = threading.Event()
        self._owns: set[tuple[str, int]] = set()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    @property
    def owns(self) -> set[tuple[str, int]]:
        return self._owns

    def leave(self) -> None:
        self._leaves.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "a member does not leave"

    def _poll(self) -> None:
        while not self._leaves.is_set():
            self._consumer.poll(0.05)
            self._owns = {(each.topic, each.partition) for each in self._consumer.assignment()}
        self._consumer.close()


@contextlib.contextmanager
def members(
    bootstrap: str, group: str, topic: str, partitions: int, *of_each: Mapping[str, object]
) -> Iterator[list[Member]]:
    """One member for each of these settings, from when together they own every partition."""
    joined = [Member(bootstrap, group, [topic], settings) for settings in of_each]
    try:
        every = {(topic, number) for number in range(partitions)}
        wait_until(
            lambda: all(each.owns for each in joined) and set.union(*(each.owns for each in joined)) == every,
            f"the members of {group} own all of {topic}",
            within_seconds=40,
        )
        yield joined
    finally:
        for each in joined:
            each.leave()


def produce(bootstrap: str, topic: str, values: Mapping[int, Sequence[int]]) -> None:
    """For each partition, one record at each of these times."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for partition, times_ms in values.items():
        for time_ms in times_ms:
            producer.produce(topic, b"x", partition=partition, timestamp=time_ms)
    assert producer.flush(30) == 0


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """As a program does that assigns its partitions itself."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
    wait_until(lambda: _is_committed(consumer, wanted), f"the offsets of {group} are committed")
    consumer.close()


def _is_committed(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    """A coordinator that has just been elected says for a moment that it is none; librdkafka tells us."""
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as problem:
        if problem.args[0].code() not in COORDINATOR_MOVING:
            raise
        return False
    return True


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> list[int | None]:
    """As a client is told; None where there is nothing."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    told = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
    consumer.close()
    return [each.offset if each.offset >= 0 else None for each in told]
