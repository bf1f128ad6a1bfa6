"""confluent-kafka: librdkafka, the C client behind most languages."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from tests.harness.workload import Received, Sent

PARTITIONERS = {"murmur2": "murmur2_random", "consistent": "consistent_random"}


class ConfluentKafka:
    name = "confluent-kafka"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        delivered = _Delivered(len(records))
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 20,
            }
        )
        for number, (partition, key, value, headers, timestamp_ms) in enumerate(records):
            while True:
                try:
                    producer.produce(
                        topic,
                        value,
                        key,
                        partition,
                        headers=list(headers),
                        timestamp=timestamp_ms,
                        on_delivery=delivered.noted_at(number),
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush(120) == 0
        return delivered.offsets()

    def produce_unplaced(
        self, bootstrap: str, topic: str, keys_and_values: Sequence[tuple[bytes | None, bytes]], partitioner: str
    ) -> list[int]:
        delivered = _Delivered(len(keys_and_values))
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "partitioner": PARTITIONERS[partitioner],
                "sticky.partitioning.linger.ms": 0,  # Keyless records go to a partition drawn for each of them.
            }
        )
        for number, (key, value) in enumerate(keys_and_values):
            producer.produce(topic, value, key, on_delivery=delivered.noted_at(number))
            producer.poll(0)
        assert producer.flush(60) == 0
        return delivered.partitions()

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int | None = None
    ) -> dict[int, list[Received]]:
        found: dict[int, list[Received]] = {partition: [] for partition in partitions}
        consumer = assigning_consumer(bootstrap)
        try:
            ends = {}
            for partition in partitions:
                ends[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
            first = OFFSET_BEGINNING if start is None else start
            consumer.assign([TopicPartition(topic, partition, first) for partition in partitions])
            unfinished = {partition for partition in partitions if ends[partition] > (start or 0)}
            deadline = time.monotonic() + 60
            while unfinished:
                assert time.monotonic() < deadline, f"partitions {unfinished} did not reach {ends}"
                for message in consumer.consume(5000, timeout=0.2):
                    received = _received(message)
                    if received.offset < ends[received.partition]:
                        found[received.partition].append(received)
                    if received.offset + 1 >= ends[received.partition]:
                        unfinished.discard(received.partition)
        finally:
            consumer.close()
        return found

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = assigning_consumer(bootstrap)
        try:
            asked = [TopicPartition(topic, partition, timestamp_ms)]
            offset: int = consumer.offsets_for_times(asked, timeout=30)[0].offset
            return offset if offset >= 0 else None
        finally:
            consumer.close()


def assigning_consumer(bootstrap: str, **more: object) -> Consumer:
    """librdkafka insists on a group's name even where no group is used."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none-is-used",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


class _Delivered:
    """Where each record went, told by its delivery report."""

    def __init__(self, count: int) -> None:
        self._messages: list[Message | None] = [None] * count

    def noted_at(self, number: int):  # type: ignore[no-untyped-def]  # The stubs' callback type changes by release.
        def note(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            self._messages[number] = message

        return note

    def offsets(self) -> list[int]:
        return [_known(message.offset()) for message in self._all()]

    def partitions(self) -> list[int]:
        return [_known(message.partition()) for message in self._all()]

    def _all(self) -> list[Message]:
        reported = [message for message in self._messages if message is not None]
        assert len(reported) == len(self._messages), "some records have no delivery report"
        return reported


def _known(number: int | None) -> int:
    assert number is not None and number >= 0
    return number


def _received(message: Message) -> Received:
    error = message.error()
    assert error is None, error
    headers: Any = tuple(message.headers() or ())  # The stubs allow more than ever comes.
    partition, offset = _known(message.partition()), _known(message.offset())
    return Received(partition, offset, message.key(), message.value(), headers, message.timestamp()[1])
