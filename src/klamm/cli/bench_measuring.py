"""What `klamm bench` measures: records sent and acknowledged, the same ones read, and single ones waited for.

The clock runs from the first record to the last acknowledgement, or from the first question to the last record read. A
producer has sent one before, because it takes librdkafka half a second to get ready.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from klamm.cli.consume_bounds import extent_of
from klamm.cli.consume_reading import Reading
from klamm.cli.group_asking import READ_UNCOMMITTED, Cluster, Refused
from klamm.cli.json_records import ANY_PARTITION, NOW_MS, Record
from klamm.cli.librdkafka import library, new_consumer, new_producer
from klamm.cli.produce_sending import Sender

ANSWER_SECONDS = 30.0
POOL_BYTES = 4 << 20

Shown = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Throughput:
    records: int
    size_bytes: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.records / self.seconds

    @property
    def mb_per_second(self) -> float:
        return self.records * self.size_bytes / self.seconds / 1e6


@dataclass(frozen=True, slots=True)
class Latency:
    """Of single records, from sending to acknowledgement."""

    records: int
    p50_ms: float
    p99_ms: float
    most_ms: float


def random_values(size: int) -> Iterator[bytes]:
    """Endless, and no codec makes them small: each is random, and not what the one before it was.

    Cut from one pool, because to draw them would take longer than to send them. A step that is odd comes to every
    place before it comes to one again, and a batch is smaller than the pool.
    """
    pool = os.urandom(POOL_BYTES + size)
    place, step = 0, size | 1
    while True:
        yield pool[place : place + size]
        place = (place + step) % POOL_BYTES


def measured_produce(
    bootstrap: str, topic: str, records: int, values: Iterator[bytes], settings: Mapping[str, object], shown: Shown
) -> Throughput:
    sender = Sender(bootstrap, topic, settings)
    first = next(values)

    def show() -> None:
        shown(f"{sender.sent:,} sent, {sender.acknowledged:,} acknowledged")

    sender.send([_record(first)], show)
    sender.flush(show)
    if sender.problems:
        raise Refused(f"a record of {len(first):,} bytes was not taken: {', '.join(sender.problems)}")
    began = time.monotonic()
    sender.send(map(_record, islice(values, records)), show)
    sender.flush(show)
    seconds = time.monotonic() - began
    if sender.acknowledged < sender.sent:
        problems = ", ".join(sender.problems) or "no acknowledgement"
        raise Refused(f"{sender.failed:,} of {records:,} records were not acknowledged: {problems}")
    return Throughput(records, len(first), seconds)


def measured_consume(bootstrap: str, cluster: Cluster, topic: str, records: int, size: int, shown: Shown) -> Throughput:
    """So many from the beginning, of all partitions."""
    partitions = [each.partition for each in cluster.leaders([topic])]
    extent = extent_of(cluster, topic, partitions, READ_UNCOMMITTED)
    consumer: Any = new_consumer(bootstrap, "klamm-bench", {})

    def give_up(quiet_seconds: float) -> None:
        if quiet_seconds > ANSWER_SECONDS:
            raise Refused(f"{read:,} of {records:,} records were read, then nothing came any more")

    read = 0
    try:
        began = time.monotonic()
        reading = Reading(consumer, topic, extent.ends, give_up)
        reading.begin(extent.starts)
        for messages in reading.batches(records):
            # As a program would: a record that nobody looks at costs less than any in life.
            read += len([message.value() for message in messages])
            shown(f"{read:,} read")
        seconds = time.monotonic() - began
    finally:
        consumer.close()
    return Throughput(read, size, seconds)


def measured_latency(
    bootstrap: str, topic: str, records: int, values: Iterator[bytes], settings: Mapping[str, object], shown: Shown
) -> Latency:
    """One after the other, each when the one before it was acknowledged."""
    producer: Any = new_producer(bootstrap, {**settings, "linger.ms": 0, "delivery.report.only.error": False})
    answers: list[Any] = []
    times_ms = []
    # The first one finds the leader, and gets an id.
    for number in range(records + 1):
        value = next(values)
        began = time.perf_counter()
        producer.produce(topic, value, on_delivery=lambda problem, _: answers.append(problem))
        while not answers:
            if time.perf_counter() > began + ANSWER_SECONDS:
                raise Refused(f"a record was not acknowledged within {ANSWER_SECONDS:.0f} s")
            producer.poll(1.0)
        if (problem := answers.pop()) is not None:
            raise Refused(f"a record was not acknowledged: {problem.str()}")
        if number:
            times_ms.append((time.perf_counter() - began) * 1_000)
            shown(f"{number:,} single records")
    times_ms.sort()
    return Latency(records, _at(times_ms, 0.5), _at(times_ms, 0.99), times_ms[-1])


def versions() -> str:
    kafka = library()
    return f"confluent-kafka {kafka.version()}, librdkafka {kafka.libversion()[0]}"


def _record(value: bytes) -> Record:
    return value, None, ANY_PARTITION, None, None, NOW_MS, None


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
