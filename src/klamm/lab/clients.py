"""The clients of an experiment: confluent-kafka, as an application uses it, and what it was told.

A record is acknowledged when the library says so to the application. With acks=0 it says so once the bytes are sent:
nobody has answered.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from klamm.lab.problems import LabError
from klamm.lab.stage import wait_until

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

USUAL = {"log_level": 0, "reconnect.backoff.max.ms": 500}
"""Brokers die here on purpose: the library would tell of each, and would try one that is back only after up to ten
seconds."""
ANSWER_SECONDS = 20.0
POLL_SECONDS = 0.05
STREAM_PAUSE_SECONDS = 0.004
ANY = -1
"""The partition that leaves the choice to the client."""


@dataclass(slots=True)
class Sent:
    """A record, and what its producer learned of it."""

    value: str
    error: str | None = None
    """The name of Kafka's error."""
    acknowledged_at: float | None = None

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_at is not None


class Writer:
    """A producer that remembers all it sent."""

    def __init__(self, bootstrap: str, acks: str, settings: Mapping[str, Any] | None = None) -> None:
        from confluent_kafka import Producer

        basics = {"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 0, **USUAL}
        self._producer = Producer({**basics, **(settings or {})})
        self.sent: list[Sent] = []

    def send(self, topic: str, value: str, *, partition: int | None = 0, key: str | None = None) -> Sent:
        """On its way; None leaves the partition to the client."""
        sent = Sent(value)
        self.sent.append(sent)
        self._producer.produce(topic, value, key, ANY if partition is None else partition, on_delivery=_noting(sent))
        self._producer.poll(0)
        return sent

    def write(self, topic: str, value: str) -> Sent:
        """Sent, and its fate known."""
        sent = self.send(topic, value)
        self.wait_answered()
        return sent

    def wait_answered(self, seconds: float = ANSWER_SECONDS) -> None:
        """Until the fate of every record is known."""
        if self._producer.flush(seconds):
            raise LabError(f"a producer has no answer to {len(self._producer)} records after {seconds:.0f} s")

    def serve(self, seconds: float) -> None:
        """Let answers come in for so long."""
        self._producer.flush(seconds)

    @property
    def acknowledged(self) -> list[Sent]:
        return [sent for sent in self.sent if sent.is_acknowledged]


def _noting(sent: Sent) -> "Callable[[KafkaError | None, Message], None]":
    def note(error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            sent.acknowledged_at = time.monotonic()
        else:
            sent.error = error.name()

    return note


class Reader:
    """A consumer of some partitions from their beginning on, in no group."""

    def __init__(self, bootstrap: str, topic: str, partitions: Iterable[int] = (0,)) -> None:
        from confluent_kafka import Consumer, TopicPartition

        basics = {"bootstrap.servers": bootstrap, "group.id": "no-group-is-used", "enable.auto.commit": False}
        self._consumer = Consumer({**basics, "fetch.wait.max.ms": 100, **USUAL})
        self._places = [TopicPartition(topic, partition, 0) for partition in partitions]
        self._consumer.assign(self._places)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def next(self, seconds: float) -> "list[Message]":
        """What comes in that time, or sooner; often nothing."""
        messages = self._consumer.consume(500, seconds)
        return [message for message in messages if message.error() is None]

    def values(self, seconds: float) -> list[str]:
        return [value_of(message) for message in self.next(seconds)]

    def high_watermark(self) -> int:
        """Where what consumers may see of the first partition ends, asked of its leader."""
        return self._end(self._places[0])

    def all(self) -> "list[Message]":
        """Everything that can be seen now, to the end."""
        wanted = sum(map(self._end, self._places))
        messages: list[Message] = []

        def is_complete() -> bool:
            messages.extend(self.next(POLL_SECONDS) if len(messages) < wanted else [])
            return len(messages) >= wanted

        wait_until(is_complete, f"{wanted} records are read")
        return messages

    def _end(self, place: Any) -> int:
        from confluent_kafka import KafkaException

        ends: list[int] = []

        def is_known() -> bool:
            try:
                ends.append(self._consumer.get_watermark_offsets(place, timeout=1, cached=False)[1])
            except KafkaException:
                return False
            return True

        wait_until(is_known, "a leader tells where the partition ends")
        return ends[-1]


def value_of(message: "Message") -> str:
    return (message.value() or b"").decode()


def all_values(bootstrap: str, topic: str, partitions: Iterable[int] = (0,)) -> list[str]:
    with Reader(bootstrap, topic, partitions) as reader:
        return [value_of(message) for message in reader.all()]


def lost(acknowledged: Sequence[Sent], readable: Sequence[str]) -> int:
    """How many records were acknowledged and cannot be read."""
    there = set(readable)
    return sum(sent.value not in there for sent in acknowledged)


def doubled(readable: Sequence[str]) -> int:
    return sum(count - 1 for count in Counter(readable).values())


class Stream:
    """Somebody who writes on and on with acks=all and idempotence, and somebody who reads it, each in a thread."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._writer = Writer(bootstrap, "all", {"enable.idempotence": True})
        self.read: list[str] = []
        self._stopping = threading.Event()
        self._patience_seconds = ANSWER_SECONDS
        self._pool = ThreadPoolExecutor(2)

    def __enter__(self) -> "Stream":
        self._writing = self._pool.submit(self._write)
        self._reading = self._pool.submit(self._read)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What was sent is answered, and what was acknowledged is read; unless something went wrong anyway."""
        self._patience_seconds = ANSWER_SECONDS if kind is None else 0.0
        self._stopping.set()
        self._pool.shutdown()
        if kind is None:
            self._writing.result()
            self._reading.result()

    @property
    def sent(self) -> list[Sent]:
        return list(self._writer.sent)

    @property
    def acknowledged(self) -> list[Sent]:
        return [sent for sent in self.sent if sent.is_acknowledged]

    def wait_acknowledged(self, more: int) -> None:
        wanted = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= wanted, f"{more} more records are acknowledged")

    def longest_silence(self) -> float:
        """The longest time between two acknowledgements, in seconds."""
        moments = sorted(sent.acknowledged_at for sent in self.sent if sent.acknowledged_at is not None)
        return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)

    def _write(self) -> None:
        number = 0
        while not self._stopping.wait(STREAM_PAUSE_SECONDS):
            self._writer.send(self._topic, f"invoice {number}")
            number += 1
        self._writer.serve(self._patience_seconds)

    def _read(self) -> None:
        with Reader(self._bootstrap, self._topic) as reader:
            while not self._writing.done():
                self.read += reader.values(POLL_SECONDS)
            deadline = time.monotonic() + self._patience_seconds
            while len(self.read) < len(self.acknowledged) and time.monotonic() < deadline:
                self.read += reader.values(POLL_SECONDS)
