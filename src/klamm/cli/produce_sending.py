"""Records on their way into a topic, and the account of them: sent, acknowledged, failed and why.

librdkafka tells only of failures. What it was given, less what failed and what is still in its queue, is acknowledged.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from klamm.cli.json_records import Record
from klamm.cli.librdkafka import library, new_producer

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

ROUND = 2_000
"""Records between two looks at the clock and at what failed."""
ROOM_SECONDS = 0.002
"""Between two looks whether the queue has room: nothing wakes us when it has, because success is not reported."""
FLUSH_SECONDS = 0.1
AHEAD_SECONDS = 0.002
"""So far before its time a record may be sent: else every one would be waited for."""


class Sender:
    def __init__(self, bootstrap: str, topic: str, settings: Mapping[str, object]) -> None:
        self._topic = topic
        self.sent = self._settled = 0
        self.problems: Counter[str] = Counter()
        kafka = library()
        self._failure: type[Exception] = kafka.KafkaException
        self.timed_out: str = kafka.KafkaError(kafka.KafkaError._MSG_TIMED_OUT).str()
        """How the problem of a record is called that nobody acknowledged in time."""
        self._producer: Any = new_producer(bootstrap, {**settings, "on_delivery": self._report})

    @property
    def failed(self) -> int:
        return self.problems.total()

    @property
    def waiting(self) -> int:
        """Neither acknowledged nor given up yet. News of brokers stand in the same queue and are no records: least of
        all when it was empty and nothing has been sent since."""
        return 0 if self.sent == self._settled else min(len(self._producer), self.sent - self.failed)

    @property
    def acknowledged(self) -> int:
        return self.sent - self.failed - self.waiting

    def send(self, records: Iterable[Record], on_round: Callable[[], None]) -> None:
        """All of them, into the queue. Ctrl-C ends it between two records."""
        left = iter(records)
        produce, topic = self._producer.produce, self._topic
        while True:
            before = self.sent
            for record in islice(left, ROUND):
                # Before the call: Ctrl-C that comes during it is raised right behind it, when the record is on its way.
                self.sent += 1
                try:
                    produce(topic, *record)
                except BufferError:
                    self.sent -= 1
                    self._send_when_there_is_room(record, on_round)
                except self._failure as problem:
                    self._note(problem.args[0])
                except Exception:
                    self.sent -= 1
                    raise
            if self.sent == before:
                return
            self._producer.poll(0)
            on_round()

    def paced(self, records: Iterable[Record], per_second: float, on_round: Callable[[], None]) -> Iterator[Record]:
        """Each when its time has come; reports are heard while waiting."""
        began = time.monotonic()
        for number, record in enumerate(records):
            ahead = began + number / per_second - time.monotonic()
            while ahead > AHEAD_SECONDS:
                self._producer.poll(min(ahead, FLUSH_SECONDS))
                on_round()
                ahead = began + number / per_second - time.monotonic()
            yield record

    def flush(self, on_round: Callable[[], None]) -> None:
        """Until every record is acknowledged or has failed, which its timeout sees to."""
        while self._producer.flush(FLUSH_SECONDS):
            on_round()
        self._settled = self.sent

    def _send_when_there_is_room(self, record: Record, on_round: Callable[[], None]) -> None:
        while True:
            self._producer.poll(ROOM_SECONDS)
            on_round()
            self.sent += 1
            try:
                self._producer.produce(self._topic, *record)
            except BufferError:
                self.sent -= 1
                continue
            except self._failure as problem:
                self._note(problem.args[0])
            return

    def _report(self, problem: "KafkaError | None", _: "Message") -> None:
        if problem is not None:
            self._note(problem)

    def _note(self, problem: "KafkaError") -> None:
        self.problems[problem.str()] += 1
