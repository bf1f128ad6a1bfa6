"""A producer that sends numbered records at a steady pace until it is told to stop, and remembers what it was told.

It is confluent-kafka with the settings it comes with, but for acks and idempotence: what it hides by retrying, it hides
from every user. Record n goes to partition n modulo their number; its value is the stream's name and n.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from proof.reckoning import Reckoning, reckoned

PAUSE_SECONDS = 0.002
GIVE_UP_SECONDS = 60.0


class Stream:
    def __init__(
        self, servers: str, topic: str, partitions: int, name: str, acks: str, idempotent: bool, per_second: int
    ) -> None:
        self.topic, self.partitions, self.name, self.per_second = topic, partitions, name, per_second
        self.sent: list[list[bytes]] = [[] for _ in range(partitions)]
        self.acknowledged: list[set[bytes]] = [set() for _ in range(partitions)]
        self.acknowledgements = 0
        self.errors: Counter[str] = Counter()
        """Records whose delivery failed for good."""
        self.heard: Counter[str] = Counter()
        """What the client told of itself, by kind; most of it it deals with alone."""
        self.longest_pause: list[float] = [0.0] * partitions
        self._last: list[float] = [0.0] * partitions
        settings = {"bootstrap.servers": servers, "acks": acks, "enable.idempotence": idempotent, "log_level": 0}
        self._producer = Producer({**settings, "error_cb": self._hear})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"stream {name}", daemon=True)

    def start(self) -> "Stream":
        self._thread.start()
        return self

    def stop(self) -> None:
        """Send no more, and wait until every record has an answer."""
        self._stopping.set()
        self._thread.join()

    def wait_acknowledged(self, more: int, timeout_seconds: float = GIVE_UP_SECONDS) -> bool:
        """Until so many more records are acknowledged; whether they were."""
        wanted, deadline = self.acknowledgements + more, time.monotonic() + timeout_seconds
        while self.acknowledgements < wanted and time.monotonic() < deadline:
            time.sleep(PAUSE_SECONDS)
        return self.acknowledgements >= wanted

    def forget_pauses(self) -> None:
        self.longest_pause = [0.0] * self.partitions

    def reckoning(self, stored: Sequence[Sequence[bytes]]) -> Reckoning:
        """`stored` by partition, this stream's records among others'."""
        mine = f"{self.name}:".encode()
        parts = zip(self.sent, self.acknowledged, stored, strict=True)
        each = [reckoned(sent, told, [v for v in found if v.startswith(mine)]) for sent, told, found in parts]
        return sum(each, Reckoning())

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - began) * self.per_second)
            while number < due:
                self._send(number)
                number += 1
            self._producer.poll(PAUSE_SECONDS)
        left = self._producer.flush(GIVE_UP_SECONDS)
        if left:
            self.errors["no answer at all"] += left
        del self._producer  # It would go on connecting.

    def _send(self, number: int) -> None:
        partition, value = number % self.partitions, f"{self.name}:{number}".encode()
        try:
            self._producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
        except BufferError:
            # The client's queue is full: as good as not sent.
            self._producer.poll(PAUSE_SECONDS)
            return
        self.sent[partition].append(value)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, value = message.partition(), message.value()
        assert partition is not None and value is not None
        if error is not None:
            self.errors[error.name()] += 1
            return
        now = time.monotonic()
        self.acknowledgements += 1
        self.acknowledged[partition].add(value)
        if self._last[partition]:
            self.longest_pause[partition] = max(self.longest_pause[partition], now - self._last[partition])
        self._last[partition] = now

    def _hear(self, error: KafkaError) -> None:
        self.heard[error.name()] += 1
