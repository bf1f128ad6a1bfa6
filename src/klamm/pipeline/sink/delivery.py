"""How the records of one task get to the cluster. There is one way so far: each at least once.

A `Delivery` takes all records of a task and returns when they are where they should be. That is the place for
transactions: a delivery of that kind begins one, sends as this one does, and commits it with the number of the batch
it belongs to; nothing around it changes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from klamm.pipeline.sink.columns import Records
from klamm.pipeline.sink.problems import NotDelivered

LOOK_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a task tells the driver."""

    records: int


class Delivery(ABC):
    @abstractmethod
    def deliver(self, batches: Iterable[Records]) -> Delivered:
        """All of them, or NotDelivered."""


class AtLeastOnce(Delivery):
    """A producer for one task. It is idempotent: its own retries double nothing. A task that Spark runs again does."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._failures = Failures(settings["message.max.bytes"])
        # Of what arrives nobody needs to hear: the callback costs as much as the record.
        quiet = {"delivery.report.only.error": True, "on_delivery": self._failures.note}
        self._producer = Producer({**settings, **quiet})

    def deliver(self, batches: Iterable[Records]) -> Delivered:
        sent = 0
        for batch in batches:
            self._send(batch)
            sent += len(batch.values)
            self._look()
        while self._producer.flush(LOOK_AGAIN_SECONDS):
            self._look()
        self._look()
        return Delivered(sent)

    def _send(self, batch: Records) -> None:
        rows = zip(batch.topics, batch.values, batch.keys, batch.partitions, strict=False)
        if batch.headers is None:
            self._put(self._producer.produce, rows)
        else:
            self._put(self._with_headers, ((*row, pairs) for row, pairs in zip(rows, batch.headers, strict=False)))

    def _put(self, produce: Callable[..., None], rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            while True:
                try:
                    produce(*row)
                    break
                except BufferError:
                    # Its queue is full: the cluster is slower than Spark.
                    self._look(LOOK_AGAIN_SECONDS)
                except KafkaException as error:
                    topic, value, key, partition, *_ = row
                    self._failures.add(error.args[0], topic, partition, len(key or b"") + len(value or b""))
                    self._look()

    def _with_headers(self, topic: str, value: bytes, key: bytes, partition: int, pairs: list[Any]) -> None:
        self._producer.produce(topic, value, key, partition, headers=pairs)

    def _look(self, seconds: float = 0) -> None:
        """For failures, waiting for news if told so. What waits must not be sent once the task has failed."""
        self._producer.poll(seconds)
        if self._failures.first is not None:
            self._producer.purge()
            raise NotDelivered(self._failures.first)


class Failures:
    """What librdkafka reports to. An object of its own: a producer and its owner that hold each other live too long."""

    def __init__(self, largest_bytes: str) -> None:
        self.first: str | None = None
        self._largest_bytes = largest_bytes

    def note(self, error: KafkaError, message: Message) -> None:
        self.add(error, message.topic() or "", message.partition() or 0, len(message))

    def add(self, error: KafkaError, topic: str, partition: int, size_bytes: int) -> None:
        if self.first is None:
            place = f"{topic}-{partition}" if partition >= 0 else topic
            is_size = error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            self.first = self._too_large(error, place, size_bytes) if is_size else _failed(error, place)

    def _too_large(self, error: KafkaError, place: str, size_bytes: int) -> str:
        return (
            f"A record of {size_bytes} bytes for {place} is too large: {error.str()}. The producer takes "
            f"{self._largest_bytes} bytes (kafka.max.request.size), the topic what its max.message.bytes says. Raise "
            "both, or make the record smaller."
        )


def _failed(error: KafkaError, place: str) -> str:
    return (
        f"A record for {place} was not delivered: {error.str()} ({error.name()}). The task fails, and Spark may run it "
        "again; what did arrive will then be there twice. Look whether the topic and the partition exist, whether "
        "enough replicas are in sync, and whether kafka.delivery.timeout.ms is long enough."
    )
