"""Invoices on their way into a topic: idempotent, acknowledged by all in-sync replicas, patient while brokers are down.

They go in rounds, each acknowledged as a whole before the next. While a partition has no leader the others must not run
hours ahead of it, or what it gets in the end would be late without having been made so.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from klamm.pipeline.invoice.generator import Invoice

PARTITIONS, REPLICAS, IN_SYNC = 10, 3, 2
ROUND = 20_000
GIVE_UP_SECONDS = 600
LOOK_SECONDS = 30
FLUSH_SECONDS = 1.0
LATE_SECONDS = 2.0
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
    # Behind a record that it gives up itself, the library would send others again under a new epoch: doubled.
    "message.timeout.ms": 0,
    "log_level": 2,
}


@dataclass(slots=True)
class Sent:
    records: int = 0
    acknowledged: int = 0
    errors: list[str] = field(default_factory=list)


def send(
    invoices: Iterable[Invoice],
    servers: str,
    topic: str,
    *,
    per_second: float | None = None,
    on_sent: Callable[[Invoice], None],
    on_progress: Callable[[Sent], None] = lambda _: None,
    has_to_end: Callable[[], bool] = lambda: False,
) -> Sent:
    """Returns when everything is acknowledged, or nothing has been for `GIVE_UP_SECONDS`, or it has to end: then all
    that waits is given up. `on_sent` hears of every record that is on its way; with the first that fails the sending
    ends."""
    sent, silence = Sent(), _Silence(has_to_end)

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is None:
            sent.acknowledged += 1
        else:
            sent.errors.append(error.str())

    producer = Producer({"bootstrap.servers": servers, **SETTINGS})
    pace = _Pace(per_second)

    def poll(seconds: float) -> None:
        producer.poll(seconds)
        if silence.is_over(sent):
            raise _GivenUp

    try:
        for invoice in invoices:
            pace.wait_for(sent.records, poll)
            _produce(producer, topic, invoice, delivered, poll)
            on_sent(invoice)
            sent.records += 1
            if sent.records % POLL_EVERY == 0:
                poll(0)
                on_progress(sent)
            if sent.records % ROUND == 0:
                _wait_acknowledged(producer, sent, silence, on_progress)
            if sent.errors:
                break
    except _GivenUp:
        producer.purge()
    except KafkaException as problem:
        sent.errors.append(str(problem))
    _wait_acknowledged(producer, sent, silence, on_progress)
    return sent


def create_topic(servers: str, topic: str) -> str:
    """Makes it if it is missing, as safe as the cluster's size allows; what was done, in words."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    seen = admin.list_topics(timeout=LOOK_SECONDS)
    if topic in seen.topics:
        return f"topic {topic} is there, with {len(seen.topics[topic].partitions)} partitions"
    replicas = min(REPLICAS, len(seen.brokers))
    config = {"min.insync.replicas": str(min(IN_SYNC, replicas))}
    asked = admin.create_topics([NewTopic(topic, PARTITIONS, replicas, config=config)], operation_timeout=LOOK_SECONDS)
    asked[topic].result(LOOK_SECONDS)
    return f"topic {topic} made: {PARTITIONS} partitions, replication {replicas}"


def _produce(
    producer: Producer,
    topic: str,
    invoice: Invoice,
    delivered: Callable[[KafkaError | None, object], None],
    poll: Callable[[float], None],
) -> None:
    while True:
        try:
            producer.produce(topic, invoice.value, invoice.key, on_delivery=delivered)
            return
        except BufferError:
            poll(0.1)


def _wait_acknowledged(
    producer: Producer, sent: Sent, silence: "_Silence", on_progress: Callable[[Sent], None]
) -> None:
    while producer.flush(FLUSH_SECONDS):
        on_progress(sent)
        if silence.is_over(sent):
            producer.purge()


class _GivenUp(Exception):  # noqa: N818
    """Nothing more is sent."""


class _Silence:
    """How long nothing has been acknowledged while something waits. A look that comes late counts as one in time: it
    may be that we were stopped."""

    def __init__(self, has_to_end: Callable[[], bool]) -> None:
        self._has_to_end = has_to_end
        self._acknowledged, self._seconds, self._looked = 0, 0.0, time.monotonic()

    def is_over(self, sent: Sent) -> bool:
        now = time.monotonic()
        self._seconds += min(now - self._looked, LATE_SECONDS)
        self._looked = now
        if sent.acknowledged != self._acknowledged or sent.records <= sent.acknowledged + len(sent.errors):
            self._acknowledged, self._seconds = sent.acknowledged, 0.0
        return self._seconds > GIVE_UP_SECONDS or self._has_to_end()


class _Pace:
    """So many a second, counted from the beginning: a pause is made up for."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second, self._began = per_second, time.monotonic()

    def wait_for(self, records: int, poll: Callable[[float], object]) -> None:
        if self._per_second is None:
            return
        while (ahead := self._began + records / self._per_second - time.monotonic()) > AHEAD_SECONDS:
            poll(min(ahead, 0.1))
