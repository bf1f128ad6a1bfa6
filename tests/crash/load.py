"""A write load that does not mind being cut off: several connections, each remembers what it was promised.

Every batch is known by its CRC, which the broker never changes (offset and epoch are outside of it). A plain producer
forgets what was not acknowledged. An idempotent one sends it again after the restart, with the same sequence numbers,
five batches under way at a time.
"""

import itertools
import threading
from collections import deque
from typing import NamedTuple

from klamm.errors import ErrorCode
from klamm.records.batch import read_header
from klamm.records.builder import BatchBuilder
from tests.crash.client import NAMED, Client, Lost, only_partition, produce_request

IN_FLIGHT = 5


class Place(NamedTuple):
    topic: str
    partition: int


class Promises:
    """What was acknowledged, where: the CRC of the batch at each offset of each partition."""

    def __init__(self) -> None:
        self.batches: dict[Place, dict[int, int]] = {}
        self.count = 0
        self._lock = threading.Lock()

    def note(self, place: Place, offset: int, crc: int) -> None:
        with self._lock:
            known = self.batches.setdefault(place, {}).setdefault(offset, crc)
            assert known == crc, f"{place}: two batches were acknowledged at offset {offset}"
            self.count += 1


class Sent(NamedTuple):
    batch: bytearray
    crc: int


class Producer:
    """One connection's worth of load on one partition; the same object over all lives of the broker."""

    def __init__(self, name: str, place: Place, promises: Promises, *, acks: int, records: int) -> None:
        self.name = name
        self.place = place
        self.refusals: list[int] = []
        self._promises = promises
        self._acks = acks
        self._records = records
        self._numbers = itertools.count()
        self._sent: deque[Sent] = deque()

    def run(self, port: int) -> None:
        """Until the broker is gone."""
        try:
            with Client(port) as client:
                self.begin(client)
                while True:
                    while client.unanswered < IN_FLIGHT:
                        self.post(client, self.next_batch())
                    self.hear(client)
        except Lost:
            pass

    def begin(self, client: Client) -> None:
        self._sent.clear()

    def post(self, client: Client, sent: Sent) -> None:
        self._sent.append(sent)
        # The broker stamps in place what arrived, never what we keep; but the client must not send a shared buffer.
        client.post(produce_request(self.place.topic, sent.batch, self.place.partition, self._acks), NAMED)

    def hear(self, client: Client) -> None:
        answer = only_partition(client.answer())
        sent = self._sent.popleft()
        if answer.error_code == ErrorCode.NONE:
            self._promises.note(self.place, answer.base_offset, sent.crc)
        else:
            self.refusals.append(answer.error_code)

    def next_batch(self) -> Sent:
        return self._filled(BatchBuilder())

    def _filled(self, builder: BatchBuilder) -> Sent:
        for _ in range(self._records):
            number = next(self._numbers)
            builder.append(b"key", b"%s %d" % (self.name.encode(), number) + b"." * (number % 200), -1)
        batch = builder.build()
        return Sent(batch, read_header(batch).crc)


class IdempotentProducer(Producer):
    def __init__(self, name: str, place: Place, promises: Promises, *, acks: int, records: int) -> None:
        super().__init__(name, place, promises, acks=acks, records=records)
        self.producer_id = -1
        self.acknowledged_sequence = 0
        """Everything below has been acknowledged."""
        self._sequence = 0

    def begin(self, client: Client) -> None:
        """Send again whatever was not acknowledged, in its order."""
        if self.producer_id < 0:
            self.producer_id = client.producer_id()
        again, self._sent = self._sent, deque()
        for sent in again:
            self.post(client, sent)

    def hear(self, client: Client) -> None:
        super().hear(client)
        self.acknowledged_sequence += self._records

    def next_batch(self) -> Sent:
        builder = BatchBuilder(producer_id=self.producer_id, producer_epoch=0, base_sequence=self._sequence)
        self._sequence += self._records
        return self._filled(builder)


class Load:
    """All producers at once, each in a thread of its own."""

    def __init__(self, producers: list[Producer]) -> None:
        self.producers = producers
        self._threads: list[threading.Thread] = []

    def start(self, port: int) -> None:
        self._threads = [threading.Thread(target=each.run, args=(port,), daemon=True) for each in self.producers]
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """After the broker was killed."""
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive(), "a producer did not notice that the broker is gone"
