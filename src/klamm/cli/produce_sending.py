"""Records on their way into a topic, and the account of them: sent, acknowledged, failed and why.

librdkafka tells only of failures. What it was given, less what failed and what is still in its queue, is acknowledged.
Of some failures nobody knows whether the record was written before them: those are counted apart.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from klamm.cli.json_records import Record
from klamm.cli.librdkafka import library, new_producer
from klamm.client.patience import Patience

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

ROUND = 2_000
"""Records between two looks at the clock and at what failed."""
ROOM_SECONDS = 0.002
"""Between two looks whether the queue has room: nothing wakes us when it has, because success is not reported."""
FLUSH_SECONDS = 0.1
AHEAD_SECONDS = 0.002
"""So far before its time a record may be sent: else every one would be waited for."""
LATE_SECONDS = 1.0
"""librdkafka looks for what is too old once a second; while it waits to connect again it may take ten times as long."""
PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")
OPEN = (
    "_MSG_TIMED_OUT",
    "_TIMED_OUT",
    "_TRANSPORT",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "BROKER_NOT_AVAILABLE",
)
"""Errors after which a record may be in the log all the same."""


class GaveUp(Exception):  # noqa: N818
    """Nothing more is to be read: it would not be sent."""


class Sender:
    """With `gives_up_after_seconds` it stops for good when a partition has acknowledged nothing for so long."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        settings: Mapping[str, object],
        gives_up_after_seconds: float | None = None,
    ) -> None:
        self._topic = topic
        self.sent = self._settled = 0
        self.problems: Counter[str] = Counter()
        self.open = 0
        """Of the problems: records that may have been written."""
        self.has_sent_all = False
        """Of its input: there was no more."""
        self.refused_without_key = ""
        """By which name the problem of a record is counted that had no key and is not valid."""
        self._why = ""
        """It gave up, by which name the problem of what was thrown away is counted."""
        kafka = library()
        self._failure: type[Exception] = kafka.KafkaException
        self.timed_out: str = kafka.KafkaError(kafka.KafkaError._MSG_TIMED_OUT).str()
        """How the problem of a record is called that nobody acknowledged in time."""
        self._invalid = kafka.KafkaError.INVALID_RECORD
        self._purged = {getattr(kafka.KafkaError, name) for name in PURGED}
        self._open = {getattr(kafka.KafkaError, name) for name in OPEN}
        self._record_seconds: float | None = None
        """Each record has so long, if librdkafka's clock is the one that counts."""
        if gives_up_after_seconds is None and "message.timeout.ms" in settings:
            self._record_seconds = float(str(settings["message.timeout.ms"])) / 1_000
        self._patience = None if gives_up_after_seconds is None else Patience(gives_up_after_seconds)
        patient = {} if self._patience is None else self._patience.settings
        self._producer: Any = new_producer(bootstrap, {**settings, **patient, "on_delivery": self._report})

    @property
    def gave_up(self) -> bool:
        return bool(self._why)

    @property
    def silent_seconds(self) -> float:
        """Of the partition that waits longest, where we look after each."""
        return 0.0 if self._patience is None else self._patience.silent_seconds

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
        """All of them, into the queue, unless it gives up before. Ctrl-C ends it between two records.

        Whoever waits in `records` listens there: statistics that nobody hears of pile up in librdkafka without limit.
        """
        with suppress(GaveUp):
            self._send(iter(records), on_round)

    def listen(self, on_round: Callable[[], None]) -> None:
        """Reports are heard, while the next record is awaited."""
        self._producer.poll(0)
        on_round()
        if self._maybe_give_up():
            raise GaveUp

    def paced(self, records: Iterable[Record], per_second: float, on_round: Callable[[], None]) -> Iterator[Record]:
        """Each when its time has come; reports are heard while waiting."""
        began = time.monotonic()
        for number, record in enumerate(records):
            ahead = began + number / per_second - time.monotonic()
            while ahead > AHEAD_SECONDS:
                self._producer.poll(min(ahead, FLUSH_SECONDS))
                on_round()
                if self._maybe_give_up():
                    return
                ahead = began + number / per_second - time.monotonic()
            yield record

    def flush(self, on_round: Callable[[], None]) -> None:
        """Until every record is acknowledged or has failed, which its timeout sees to, or ours."""
        began = time.monotonic()
        while self._producer.flush(FLUSH_SECONDS):
            on_round()
            if not self._maybe_give_up() and self._is_overdue(began):
                self.give_up(self.timed_out)
        self._settled = self.sent

    def _send(self, left: Iterator[Record], on_round: Callable[[], None]) -> None:
        produce, topic = self._producer.produce, self._topic
        while not self._maybe_give_up():
            before = self.sent
            for record in islice(left, ROUND):
                # Before the call: Ctrl-C that comes during it is raised right behind it, when the record is on its way.
                self.sent += 1
                try:
                    produce(topic, *record)
                except BufferError:
                    self.sent -= 1
                    self._send_when_there_is_room(record, on_round)
                    if self.gave_up:
                        return
                except self._failure as problem:
                    self._note(problem.args[0])
                except Exception:
                    self.sent -= 1
                    raise
            if self.sent < before + ROUND:
                # Whoever paces ends as well when it gives up, with a record in hand.
                self.has_sent_all = not self.gave_up
                if self.sent == before:
                    return
            self._producer.poll(0)
            on_round()

    def give_up(self, why: str) -> None:
        """What waits is thrown away, so that nothing of it is written later, or again. The first reason is the one."""
        self._why = self._why or why
        self._producer.purge()

    def _maybe_give_up(self) -> bool:
        """Whether it has."""
        if self._patience is not None and not self.gave_up and self._patience.is_over(time.monotonic()):
            self.give_up(self.timed_out)
        return self.gave_up

    def _is_overdue(self, began: float) -> bool:
        """Every record had all of its time since then, and librdkafka has not noticed."""
        seconds = self._record_seconds
        return seconds is not None and time.monotonic() > began + seconds + LATE_SECONDS

    def _send_when_there_is_room(self, record: Record, on_round: Callable[[], None]) -> None:
        while True:
            self._producer.poll(ROOM_SECONDS)
            on_round()
            if self._maybe_give_up():
                return
            self.sent += 1
            try:
                self._producer.produce(self._topic, *record)
            except BufferError:
                self.sent -= 1
                continue
            except self._failure as problem:
                self._note(problem.args[0])
            return

    def _report(self, problem: "KafkaError | None", message: "Message") -> None:
        if problem is not None:
            if self._patience is not None:
                self._patience.note_failed(str(message.topic()), message.partition() or 0)
            if problem.code() == self._invalid and message.key() is None:
                self.refused_without_key = problem.str()
            self._note(problem)

    def _note(self, problem: "KafkaError") -> None:
        is_purged = problem.code() in self._purged
        self.problems[self._why if is_purged else problem.str()] += 1
        self.open += is_purged or problem.code() in self._open
