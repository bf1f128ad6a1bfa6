"""Invoices on their way into a topic: idempotent, acknowledged by all in-sync replicas, patient while brokers are down.

They go in rounds, each acknowledged as a whole before the next. While a partition has no leader the others must not run
hours ahead of it, or what it gets in the end would be late without having been made so.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from klamm.client.patience import Patience
from klamm.pipeline.invoice.generator import Invoice
from klamm.pipeline.problems import PipelineError

PARTITIONS, REPLICAS, IN_SYNC = 10, 3, 2
ROUND = 20_000
GIVE_UP_SECONDS = 600
LOOK_SECONDS = 30
WAIT_SECONDS = 0.1
"""At most, between two looks whether it goes on."""
POLL_EVERY = 500
AHEAD_SECONDS = 0.01
"""So far ahead of their time records may be. librdkafka waits whole milliseconds, and for less than one not at all: who
waited for each of a thousand records a second kept a core busy."""
SETTINGS = {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": ROUND,
    "log_level": 2,
}
PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
"""What the library was told to throw away. To it, what is in a log and was to be sent again is in the queue, too."""
UNANSWERED = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)


class NotMade(PipelineError):  # noqa: N818
    """A topic, for all we know."""


@dataclass(slots=True)
class Sent:
    records: int = 0
    acknowledged: int = 0
    errors: list[str] = field(default_factory=list)
    silent_seconds: float = 0.0
    """How long the partition that waits longest has acknowledged nothing."""
    was_silent: bool = False
    """A partition, for longer than one waits."""


def send(
    invoices: Iterable[Invoice],
    servers: str,
    topic: str,
    *,
    per_second: float | None = None,
    on_sent: Callable[[Invoice], None],
    on_progress: Callable[[Sent], None] = lambda _: None,
    stops: Callable[[], bool] = lambda: False,
    has_to_end: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
) -> Sent:
    """Returns when everything is acknowledged, or a partition has acknowledged nothing for `GIVE_UP_SECONDS`, or it has
    to end: then all that waits is given up. `on_sent` hears of every record that is on its way; with the first that
    fails the sending ends, and when it `stops`. `on_progress` is called several times a second."""
    way, pace = _Way(servers, topic, on_progress, stops, has_to_end, clock), _Pace(per_second, clock)
    sent = way.sent
    with suppress(_NoMore):
        for invoice in invoices:
            pace.wait_for(sent.records, way.wait)
            way.produce(invoice)
            on_sent(invoice)
            if sent.records % POLL_EVERY == 0:
                way.wait(0)
            if sent.records % ROUND == 0:
                way.wait_acknowledged()
            if sent.errors or stops():
                break
    way.wait_acknowledged()
    return sent


def create_topic(servers: str, topic: str) -> str:
    """Makes it if it is missing, as safe as the cluster's size allows; what was done, in words, or `NotMade`."""
    try:
        return _topic_there_or_made(servers, topic)
    except KafkaException as problem:
        told = problem.args[0]
        if told.code() in UNANSWERED:
            raise NotMade(f"{servers} does not answer any more: {told.str()}") from None
        raise NotMade(f"cannot make topic {topic}: {told.str()}") from None
    except TimeoutError:
        raise NotMade(f"cannot make topic {topic}: no answer within {LOOK_SECONDS} s") from None


def _topic_there_or_made(servers: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    seen = admin.list_topics(timeout=LOOK_SECONDS)
    if topic in seen.topics:
        return f"topic {topic} is there, with {len(seen.topics[topic].partitions)} partitions"
    replicas = min(REPLICAS, len(seen.brokers))
    config = {"min.insync.replicas": str(min(IN_SYNC, replicas))}
    asked = admin.create_topics([NewTopic(topic, PARTITIONS, replicas, config=config)], operation_timeout=LOOK_SECONDS)
    asked[topic].result(LOOK_SECONDS)
    return f"topic {topic} made: {PARTITIONS} partitions, replication {replicas}"


class _NoMore(Exception):  # noqa: N818
    """Nothing more is sent."""


class _Way:
    """A producer, and what became of what it was given."""

    def __init__(
        self,
        servers: str,
        topic: str,
        on_progress: Callable[[Sent], None],
        stops: Callable[[], bool],
        has_to_end: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self.sent = Sent()
        self._topic, self._on_progress = topic, on_progress
        self._stops, self._has_to_end, self._clock = stops, has_to_end, clock
        self._patience, self._given_up = Patience(GIVE_UP_SECONDS), ""
        self._producer = Producer({"bootstrap.servers": servers, **SETTINGS, **self._patience.settings})

    def produce(self, invoice: Invoice) -> None:
        while True:
            # Before the call: what is refused was to be sent as well, and has failed.
            self.sent.records += 1
            try:
                self._producer.produce(self._topic, invoice.value, invoice.key, on_delivery=self._delivered)
                return
            except BufferError:
                self.sent.records -= 1
            except KafkaException as problem:
                self.sent.errors.append(problem.args[0].str())
                raise _NoMore from None
            self.wait(WAIT_SECONDS)

    def wait(self, seconds: float) -> None:
        self._producer.poll(seconds)
        self._on_progress(self.sent)
        if self._maybe_give_up() or self._stops():
            raise _NoMore

    def wait_acknowledged(self) -> None:
        while self._producer.flush(WAIT_SECONDS):
            self._on_progress(self.sent)
            self._maybe_give_up()

    def _maybe_give_up(self) -> bool:
        """Whether it has: what waits is thrown away, so that nothing of it is written later, or again."""
        self._given_up = self._given_up or self._why_to_give_up()
        if self._given_up:
            self._producer.purge()
        return bool(self._given_up)

    def _why_to_give_up(self) -> str:
        is_over = self._patience.is_over(self._clock())
        self.sent.silent_seconds = self._patience.silent_seconds
        if is_over:
            self.sent.was_silent = True
            return f"given up because a partition acknowledged nothing for {GIVE_UP_SECONDS:g} s"
        return "given up because it was asked to end" if self._has_to_end() else ""

    def _delivered(self, problem: KafkaError | None, message: Message) -> None:
        if problem is None:
            self.sent.acknowledged += 1
        else:
            self._patience.note_failed(str(message.topic()), message.partition() or 0)
            is_purged = problem.code() in PURGED
            self.sent.errors.append(f"{self._given_up}; some may be there" if is_purged else problem.str())


class _Pace:
    """So many a second, counted from the beginning: a pause is made up for."""

    def __init__(self, per_second: float | None, clock: Callable[[], float]) -> None:
        self._per_second, self._clock, self._began = per_second, clock, clock()

    def wait_for(self, records: int, poll: Callable[[float], object]) -> None:
        if self._per_second is None:
            return
        while (ahead := self._began + records / self._per_second - self._clock()) > AHEAD_SECONDS:
            poll(min(ahead, WAIT_SECONDS))
