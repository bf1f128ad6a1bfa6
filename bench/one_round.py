"""One system in one round: start it on an empty directory, warm it up, measure everything, throw the directory away.

The order is the same for both systems: start, five idle seconds, warm-up, latency, produce, consume. The warm-up
produces and consumes through the Java client, long enough for Kafka's JVM to compile its hot paths; both systems get
it, and nothing of it is counted. Each client then warms itself up as well before it begins to count. Before every
measurement dirty pages are written back, so that one measurement does not pay for the one before.
Consumers read topics that hold the same bytes in both systems: batches of 16 KiB, as Kafka's producer fills them.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench import java, process, raw
from bench.figures import SIZES
from bench.start import StartError, started
from bench.systems import Node, System
from bench.worker import ClientError, Work, python_module, watched

PARTITIONS = 6
JAVA_BATCH_BYTES = 16 * 1024
RAW_BATCH_BYTES = 1_000_000
MESSAGE_BYTES = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. Volumes are such that a measurement takes at least five seconds on two cores."""

    name: str
    java_records: dict[int, int]
    java_warmup_records: dict[int, int]
    seconds: float
    warmup_seconds: float
    messages: int
    warmup_messages: int
    idle_seconds: float
    fill_bytes: int
    raw_bytes: int
    floor_bytes: int


FULL = Plan(
    name="full",
    java_records={100: 6_000_000, 1024: 2_000_000},
    java_warmup_records={100: 2_000_000, 1024: 700_000},
    seconds=5,
    warmup_seconds=3,
    messages=10_000,
    warmup_messages=5_000,
    idle_seconds=5,
    fill_bytes=1_000_000_000,
    raw_bytes=4_000_000_000,
    floor_bytes=2_000_000_000,
)
QUICK = Plan(
    name="quick",
    java_records={100: 500_000, 1024: 150_000},
    java_warmup_records={100: 200_000, 1024: 50_000},
    seconds=1,
    warmup_seconds=0.5,
    messages=1_000,
    warmup_messages=1_000,
    idle_seconds=1,
    fill_bytes=200_000_000,
    raw_bytes=300_000_000,
    floor_bytes=500_000_000,
)

Wanted = Callable[[str], bool]


@dataclass(slots=True)
class Measured:
    """Figures by name, how long each measurement took, and what went wrong instead."""

    figures: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def measured(system: System, directory: Path, plan: Plan, wanted: Wanted) -> Measured:
    result = Measured()
    with system.prepare(directory) as node:
        try:
            os.sync()
            result.figures["start.first_ack"] = started(node, "first").first_ack
            _Round(node, plan, wanted, result).run()
        except (StartError, raw.RefusedError, OSError) as error:
            result.failures["system"] = str(error)
    return result


@dataclass(slots=True)
class _Round:
    node: Node
    plan: Plan
    wanted: Wanted
    result: Measured

    def run(self) -> None:
        if self.wanted("memory"):
            self._idle()
        if not any(map(self.wanted, ("latency", "produce", "consume"))):
            return
        self._warm_up()
        for client in ("java", "librdkafka", "raw"):
            if self.wanted(f"latency.{client}"):
                self._latency(client)
        process.forget_peak(self.node.pid)
        for client, size in self._selected("produce"):
            self._produce(client, size)
            self.result.figures["memory.load_rss"] = process.memory(self.node.pid).peak_mib
        reads = list(self._selected("consume"))
        bytes_per_record = {size: self._fill(size) for size in sorted({size for _, size in reads})}
        for client, size in reads:
            self._consume(client, size, bytes_per_record[size])

    def _selected(self, verb: str) -> Iterator[tuple[str, int]]:
        for client, sizes in (("java", list(SIZES)), ("librdkafka", list(SIZES)), ("raw", [1024])):
            for size in sizes:
                if self.wanted(f"{verb}.{client}.{size}"):
                    yield client, size

    def _idle(self) -> None:
        time.sleep(self.plan.idle_seconds)
        memory = process.memory(self.node.pid)
        self.result.figures["memory.idle_rss"] = memory.resident_mib
        self.result.figures["memory.idle_pss"] = memory.proportional_mib

    def _warm_up(self) -> None:
        with self._measurement("warm-up"):
            topic = self._topic("warm-up", PARTITIONS)
            for size in SIZES:
                java.produce(self.node, topic, size, 1, self.plan.java_warmup_records[size])
            java.consume(self.node, topic, 0, self.plan.warmup_seconds)

    def _latency(self, client: str) -> None:
        name = f"latency.{client}"
        with self._measurement(name):
            topic = self._topic(name, 1)
            if client == "java":
                work = java.latency(self.node, topic, self.plan.warmup_messages, self.plan.messages, MESSAGE_BYTES)
            else:
                to = self.node.port if client == "raw" else self.node.address
                module = "rawload" if client == "raw" else "librdkafka"
                numbers = (MESSAGE_BYTES, self.plan.warmup_messages, self.plan.messages)
                work = watched(python_module(module, "latency", to, topic, *numbers), self.node, topic)
            self.result.figures[f"{name}.p50"] = work.said["p50_ms"]
            self.result.figures[f"{name}.p99"] = work.said["p99_ms"]

    def _produce(self, client: str, size: int) -> None:
        name = f"produce.{client}.{size}"
        with self._measurement(name):
            topic = self._topic(name, PARTITIONS)
            if client == "java":
                warmup, records = self.plan.java_warmup_records[size], self.plan.java_records[size]
                work = java.produce(self.node, topic, size, warmup, records)
            elif client == "raw":
                work = self._raw_produce(topic, size, RAW_BATCH_BYTES, 1, self.plan.raw_bytes)
            else:
                numbers = (PARTITIONS, size, self.plan.warmup_seconds, self.plan.seconds)
                command = python_module("librdkafka", "produce", self.node.address, topic, *numbers)
                work = watched(command, self.node, topic)
            seconds = work.said["seconds"]
            rate = work.said["bytes"] / seconds / 1e6
            self._note(name, rate, seconds, work.cpu_seconds, work.stored_bytes)

    def _fill(self, size: int) -> float:
        """A topic to consume. Returns how many bytes on disk one record takes, batch header included."""
        topic = self._topic(f"stored.{size}", PARTITIONS)
        work = self._raw_produce(topic, size, JAVA_BATCH_BYTES, PARTITIONS, self.plan.fill_bytes)
        return work.stored_bytes / float(work.said["records"])

    def _consume(self, client: str, size: int, bytes_per_record: float) -> None:
        name, topic = f"consume.{client}.{size}", f"stored.{size}"
        warmup, seconds = self.plan.warmup_seconds, self.plan.seconds
        with self._measurement(name):
            if client == "java":
                work = java.consume(self.node, topic, warmup, seconds)
            elif client == "librdkafka":
                numbers = (PARTITIONS, size, warmup, seconds)
                command = python_module("librdkafka", "consume", self.node.address, topic, *numbers)
                work = watched(command, self.node, topic)
            else:
                command = python_module("rawload", "consume", self.node.port, topic, PARTITIONS, warmup, seconds)
                work = watched(command, self.node, topic)
            elapsed = work.said["seconds"]
            stored = work.said["stored"] if client == "raw" else work.said["records"] * bytes_per_record
            self._note(name, stored / bytes_per_record * size / elapsed / 1e6, elapsed, work.cpu_seconds, stored)

    def _raw_produce(self, topic: str, size: int, batch_bytes: int, at_once: int, total: int) -> Work:
        numbers = (PARTITIONS, size, batch_bytes, at_once, total)
        return watched(python_module("rawload", "produce", self.node.port, topic, *numbers), self.node, topic)

    def _note(self, name: str, rate: float, seconds: float, cpu: float, stored: float) -> None:
        self.result.figures[name] = rate
        self.result.figures[f"cpu.{name}"] = cpu / (stored / 1e9)
        self.result.seconds[name] = seconds

    def _topic(self, name: str, partitions: int) -> str:
        connection = raw.Connection(self.node.port)
        raw.create_topics(connection, [(name, partitions)])
        raw.wait_until_served(connection, [(name, partitions)])
        connection.close()
        return name

    @contextmanager
    def _measurement(self, name: str) -> Iterator[None]:
        """One client that fails spoils its own figure, a broker that died spoils the rest of the round."""
        os.sync()
        try:
            yield
        except (ClientError, raw.RefusedError, OSError) as error:
            self.result.failures[name] = str(error)
            if not self.node.is_running():
                raise StartError(f"the broker ended during {name}: {self.node.last_output()}") from error
