"""Format `klamm` beside Spark's own connector: how many records a second a streaming query reads.

One broker of Klamm, one Spark session, topics that are filled once by librdkafka. Every query reads a whole topic in
equal triggers, to Spark's noop sink or into a Delta table; before the first round each format has read a topic once,
so that nobody pays for what is started once. In a round the two formats take turns on each topic and sink; the next
round begins with the other. The floor decodes the broker's own files with the same code, without a network.
"""

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import process, report, store
from bench.run import QUIET_SECONDS
from bench.spark_queries import FLOOR, FORMATS, SINKS, Session, Topic
from bench.start import started
from bench.systems import Klamm, Node

CODECS = ("none", "lz4", "zstd")
WORDS = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    records: dict[int, int]
    """How many, by the size of their values."""
    partitions: int = 4
    triggers: int = 4


FULL = Plan("full", {100: 4_000_000, 1_000: 800_000})
QUICK = Plan("quick", {100: 200_000, 1_000: 40_000})


@dataclass(frozen=True, slots=True)
class Wish:
    plan: Plan
    rounds: int
    codecs: tuple[str, ...]
    sinks: tuple[str, ...]
    scratch: Path
    results: Path

    @property
    def path(self) -> Path:
        return self.results / "spark.jsonl"

    @property
    def topics(self) -> list[Topic]:
        return [
            Topic(f"v{size}-{codec}", codec, size, count, self.plan.partitions, self.plan.triggers)
            for size, count in self.plan.records.items()
            for codec in self.codecs
        ]


def run(wish: Wish, tell: Callable[[str], None]) -> None:
    """Measure; a line of results for every query."""
    header = _header(wish)
    store.append(wish.path, header)
    with Klamm().prepare(wish.scratch / "spark-broker") as node:
        started(node, "first")
        for topic in wish.topics:
            tell(f"filling {topic.name}: {topic.records:,} records of {topic.value_bytes} bytes")
            fill(node.address, topic)
        session = Session()
        try:
            _measure(wish, node, session, header["run"], tell)
        finally:
            session.close()


def _measure(wish: Wish, node: Node, session: Session, identity: str, tell: Callable[[str], None]) -> None:
    where = {"address": node.address, "directory": str(node.directory / "data")}
    scratch = wish.scratch / "spark"
    for sink in wish.sinks:
        for kind in (*FORMATS, FLOOR):
            tell(f"warming up: {kind}, {sink}")
            session.records_a_second(kind, wish.topics[-1], sink, where, scratch)
    for number in range(1, wish.rounds + 1):
        for topic in wish.topics:
            for sink in wish.sinks:
                busy = process.busy_share(QUIET_SECONDS)
                kinds = (*(FORMATS if number % 2 else reversed(FORMATS)), *([FLOOR] if sink == SINKS[0] else []))
                for kind in kinds:
                    figure = session.records_a_second(kind, topic, sink, where, scratch)
                    tell(f"round {number}: {topic.name} to {sink}, {kind}: {figure:,.0f} records/s{_warning(busy)}")
                    line = {
                        "kind": "figure", "run": identity, "round": number, "busy": round(busy, 3), "format": kind,
                        "codec": topic.codec, "bytes": topic.value_bytes, "sink": sink,
                        "records_per_second": round(figure),
                    }  # fmt: skip
                    store.append(wish.path, line)


def fill(address: str, topic: Topic) -> None:
    """Values of words, which compress about as well as JSON does; a key of eight bytes."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic.name, topic.partitions, 1)])[topic.name].result(60)
    chance = random.Random(topic.value_bytes)
    words = [chance.randbytes(3).hex().encode() for _ in range(WORDS)]
    several = [
        b" ".join(chance.choices(words, k=topic.value_bytes // 7 + 1))[: topic.value_bytes] for _ in range(1_000)
    ]
    settings = {
        "bootstrap.servers": address, "compression.type": topic.codec, "linger.ms": 20, "batch.size": 200_000,
        "queue.buffering.max.messages": 500_000, "delivery.report.only.error": True,
    }  # fmt: skip
    producer = Producer(settings)
    for number in range(topic.records):
        value, key = several[number % len(several)], b"%08d" % number
        while True:
            try:
                producer.produce(topic.name, value, key, number % topic.partitions, on_delivery=_fail)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(300):
        raise TimeoutError("records were never acknowledged")


def _fail(error: Any, message: object) -> None:
    raise RuntimeError(f"a record was not delivered: {error}")


def _warning(busy: float) -> str:
    return f" (others use {busy:.0%} of the cores)" if busy > report.BUSY else ""


def _header(wish: Wish) -> dict[str, Any]:
    return {
        "kind": "run",
        "set": "spark",
        "run": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "plan": asdict(wish.plan),
        "machine": store.machine(),
    }
