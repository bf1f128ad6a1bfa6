"""Producers and consumers of a run: confluent-kafka, as applications use it, each remembering all it did and was told.

Producers send at a steady pace to every partition. A record's value is its producer's name and number, and some
filling. Consumers read every partition from its beginning. What the client library hides by trying again it hides
from every user; what it tells of is kept.
"""

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from klamm.chaos.verdict import Place, Read, Reader, Sender

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

PAUSE_SECONDS = 0.005
POLL_SECONDS = 0.1
MOST_RECORDS = 1_000
LARGEST_FILLING = 200
QUIET = {"log_level": 0}
"""Brokers die here on purpose; the library would tell of each."""


class Acknowledgements:
    """When each partition last acknowledged anything, and the longest time that one did not."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self.count = 0
        self._last: dict[Place, float] = {}
        self._lock = threading.Lock()

    def note(self, place: Place) -> None:
        now = time.monotonic()
        with self._lock:
            self.longest_seconds = max(self.longest_seconds, now - self._last.get(place, now))
            self._last[place] = now
            self.count += 1

    def have_come_since(self, moment: float, places: Sequence[Place]) -> bool:
        """Whether every one of these partitions has acknowledged something since."""
        with self._lock:
            return all(self._last.get(place, 0.0) > moment for place in places)


class Producing:
    def __init__(
        self,
        sender: Sender,
        bootstrap: str,
        places: Sequence[Place],
        per_second: int,
        settings: Mapping[str, Any],
        acknowledgements: Acknowledgements,
    ) -> None:
        from confluent_kafka import Producer

        self.sender = sender
        self.errors: Counter[str] = Counter()
        """Records of which the client gave up, by why."""
        self.unanswered = 0
        self._places, self._per_second = places, per_second
        self._acknowledgements = acknowledgements
        basics = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": sender.is_idempotent, **QUIET}
        self._producer = Producer({**basics, **settings})
        self._random = Random(sender.name)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"producer {sender.name}", daemon=True)
        self._give_up_at = float("inf")

    def start(self) -> "Producing":
        self._thread.start()
        return self

    def ask_to_stop(self, patience_seconds: float) -> None:
        """Send no more; every record gets so long for an answer."""
        self._give_up_at = time.monotonic() + patience_seconds
        self._stopping.set()

    def wait_stopped(self) -> None:
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - began) * self._per_second)
            while number < due:
                self._send(number)
                number += 1
            self._producer.poll(PAUSE_SECONDS)
        while len(self._producer) and time.monotonic() < self._give_up_at:
            self._producer.flush(POLL_SECONDS)
        self.unanswered = len(self._producer)
        self._producer.purge()
        self._producer.flush(POLL_SECONDS)
        del self._producer  # It would go on connecting.

    def _send(self, number: int) -> None:
        place = self._places[number % len(self._places)]
        filling = "x" * self._random.randrange(LARGEST_FILLING)
        value = f"{self.sender.name}:{number} {filling}".encode()
        # Noted first: the answer may be there before the call is back.
        self.sender.sent[place].append(value)
        try:
            self._producer.produce(place.topic, value, partition=place.partition, on_delivery=self._delivered)
        except BufferError:
            # The client's queue is full: not sent at all.
            self.sender.sent[place].pop()
            self._producer.poll(PAUSE_SECONDS)

    def _delivered(self, error: "KafkaError | None", message: "Message") -> None:
        place, value = Place(str(message.topic()), int(message.partition() or 0)), message.value()
        assert isinstance(value, bytes)
        if error is not None:
            self.errors[error.name()] += 1
            return
        offset = message.offset()
        self.sender.acknowledged[place][value] = -1 if offset is None else offset
        self._acknowledgements.note(place)


class Consuming:
    def __init__(self, reader: Reader, bootstrap: str, places: Sequence[Place], settings: Mapping[str, Any]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.reader = reader
        self.heard: Counter[str] = Counter()
        """What the client told of itself, by kind; most of it it deals with alone."""
        self._next: Counter[Place] = Counter()
        basics = {"bootstrap.servers": bootstrap, "group.id": "none-is-used", "enable.auto.commit": False, **QUIET}
        # Who is told that its place is not there must not quietly begin elsewhere.
        strict = {"auto.offset.reset": "error", "check.crcs": True}
        self._consumer = Consumer({**basics, **strict, **settings})
        self._consumer.assign([TopicPartition(place.topic, place.partition, 0) for place in places])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"consumer {reader.name}", daemon=True)

    def start(self) -> "Consuming":
        self._thread.start()
        return self

    def has_read(self, ends: Mapping[Place, int]) -> bool:
        return all(self._next[place] >= end for place, end in ends.items())

    def missing(self, ends: Mapping[Place, int]) -> str:
        return ", ".join(f"{p} at {self._next[p]} of {end}" for p, end in ends.items() if self._next[p] < end)

    def ask_to_stop(self) -> None:
        self._stopping.set()

    def wait_stopped(self) -> None:
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(MOST_RECORDS, POLL_SECONDS):
                self._take(message)
        self._consumer.close()

    def _take(self, message: "Message") -> None:
        error = message.error()
        if error is not None:
            self._note_error(error, message)
            return
        place, offset = Place(str(message.topic()), int(message.partition() or 0)), int(message.offset() or 0)
        value = message.value()
        self.reader.reads.append(Read(place, offset, value if isinstance(value, bytes) else b""))
        self._next[place] = offset + 1

    def _note_error(self, error: "KafkaError", message: "Message") -> None:
        from confluent_kafka import KafkaError, TopicPartition

        self.heard[error.name()] += 1
        vanished = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION)
        if error.code() not in vanished:
            return
        place = Place(str(message.topic()), int(message.partition() or 0))
        self.reader.refusals.append(f"{place} at offset {self._next[place]}: {error.str()}")
        self._consumer.seek(TopicPartition(place.topic, place.partition, self._next[place]))
