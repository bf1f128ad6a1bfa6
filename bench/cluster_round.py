"""One system's cluster in one round: three brokers started on an empty directory, warmed up, measured, thrown away.

The order is the same for both systems: start, idle seconds, warm-up, latency at a fixed rate, produce, consume. Every
topic has three replicas and min.insync.replicas 2, every producer acks=all. A topic is deleted after its measurement,
before its bytes reach the disk. Consumers read topics that hold the same bytes in both systems: batches of 16 KiB.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench import java, raw, replicated
from bench.cluster_figures import CASES, CONSUMED, LATENCY, MAXIMUM, QUICK_CASES, Case
from bench.clusters import NODES, Cluster, prepared
from bench.crowd import Stretch, stretch
from bench.figures import SIZES
from bench.one_round import JAVA_BATCH_BYTES, Measured, Wanted
from bench.start import StartError
from bench.systems import Kafka, Klamm
from bench.worker import ClientError, Work, python_module, watched

WITHOUT_END = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How long each client works and how long it has worked before that, uncounted."""

    name: str
    cases: list[Case]
    seconds: float
    warmup_seconds: float
    latency_seconds: float
    latency_warmup_seconds: float
    system_warmup_seconds: float
    idle_seconds: float
    fill_bytes: int


FULL = Plan(
    name="full",
    cases=CASES,
    seconds=4,
    warmup_seconds=2.5,
    latency_seconds=10,
    latency_warmup_seconds=4,
    system_warmup_seconds=20,
    idle_seconds=5,
    fill_bytes=300_000_000,
)
QUICK = Plan(
    name="quick",
    cases=QUICK_CASES,
    seconds=1,
    warmup_seconds=0.5,
    latency_seconds=2,
    latency_warmup_seconds=1,
    system_warmup_seconds=1,
    idle_seconds=1,
    fill_bytes=50_000_000,
)

Step = Callable[[str], None]  # is told what is being measured
ANY_ERROR = (ClientError, raw.RefusedError, KafkaException, OSError)


def maximum(system: Kafka | Klamm, directory: Path, plan: Plan, step: Step) -> float:
    """Records of 1 KiB a second that one Java producer gets into a cluster that has been warmed up."""
    result = Measured()
    with prepared(system, directory) as cluster:
        replicated.started(cluster)
        its_round = _Round(cluster, plan, lambda name: True, result, step)
        its_round.warm_up()
        its_round.produce(MAXIMUM)
    if result.failures:
        raise StartError(f"{system.name}: {result.failures}")
    return result.figures[MAXIMUM.name] * 1e6 / MAXIMUM.size


def measured(system: Kafka | Klamm, directory: Path, plan: Plan, wanted: Wanted, rate: int, step: Step) -> Measured:
    """All figures of one system; latency at this many records a second."""
    result = Measured()
    with prepared(system, directory) as cluster:
        try:
            os.sync()
            result.figures["start.first_ack"] = replicated.started(cluster)
            _Round(cluster, plan, wanted, result, step).run(rate)
        except (StartError, *ANY_ERROR) as error:
            result.failures["system"] = str(error)
    return result


@dataclass(slots=True)
class _Round:
    cluster: Cluster
    plan: Plan
    wanted: Wanted
    result: Measured
    step: Step
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.admin = replicated.admin_of(self.cluster)

    def run(self, rate: int) -> None:
        if self.wanted("memory"):
            self._idle()
        self.warm_up()
        if self.wanted("latency"):
            self._latency(rate)
        self.cluster.forget_peak()
        for case in self.plan.cases:
            if self.wanted(case.name):
                self.produce(case)
                self.result.figures["memory.load_rss"] = self.cluster.memory().peak_mib
        for (size, partitions), clients in CONSUMED.items():
            wanted = [client for client in clients if self.wanted(f"consume.{client}.{size}.{partitions}")]
            if wanted:
                self._consume(size, partitions, wanted)

    def warm_up(self) -> None:
        with self._topic("warm-up", 6) as topic:
            for size in SIZES:
                self._produced(Case("java", size, 6, 3), topic, 0, self.plan.system_warmup_seconds)
            java.consume(self.cluster, topic, 0, self.plan.warmup_seconds)

    def produce(self, case: Case) -> None:
        with self._topic(case.name, case.partitions) as topic:
            seen = self._produced(case, topic, self.plan.warmup_seconds, self.plan.seconds)
            records = seen.stored_bytes / replicated.bytes_per_record(self.cluster, self.admin, topic)
            self._note(case.name, records * case.size / seen.seconds / 1e6, seen.cpu_seconds, seen.stored_bytes)
            states = replicated.described(self.admin, topic).values()
            if alone := sum(state.in_sync < NODES for state in states):
                raise ClientError(f"{alone} of {len(states)} partitions were not in sync on all nodes afterwards")

    def _produced(self, case: Case, topic: str, warmup: float, seconds: float) -> Stretch:
        address = self.cluster.address
        if case.client == "java":
            command = java.perf_test(address, topic, case.size, WITHOUT_END, acks="all")
        else:
            numbers = (case.partitions, case.size, 0, WITHOUT_END, replicated.ALL)
            command = python_module("librdkafka", "produce", address, topic, *numbers)
        return stretch([command] * case.producers, self.cluster, topic, warmup, seconds)

    def _latency(self, rate: int) -> None:
        plan, figures = self.plan, self.result.figures
        with self._topic("latency", LATENCY.partitions) as topic:
            warmup, seconds = plan.latency_warmup_seconds, plan.latency_seconds
            work = java.paced(self.cluster, topic, rate, warmup, seconds, LATENCY.size)
            for share in ("p50", "p99", "p999", "max"):
                figures[f"latency.{share}"] = work.said[f"{share}_ms"]
            figures["latency.rate"] = rate
            figures["cpu.latency"] = work.cpu_seconds / (work.stored_bytes / 1e9)

    def _consume(self, size: int, partitions: int, clients: list[str]) -> None:
        with self._topic(f"stored.{size}.{partitions}", partitions) as topic:
            replicated.fill(self.cluster, self.admin, topic, size, JAVA_BATCH_BYTES, self.plan.fill_bytes)
            bytes_per_record = replicated.bytes_per_record(self.cluster, self.admin, topic)
            for client in clients:
                work = self._consumed(client, topic, size, partitions)
                records, seconds = work.said["records"], work.said["seconds"]
                name = f"consume.{client}.{size}.{partitions}"
                self._note(name, records * size / seconds / 1e6, work.cpu_seconds, records * bytes_per_record)

    def _consumed(self, client: str, topic: str, size: int, partitions: int) -> Work:
        warmup, seconds = self.plan.warmup_seconds, self.plan.seconds
        if client == "java":
            return java.consume(self.cluster, topic, warmup, seconds)
        numbers = (partitions, size, warmup, seconds)
        command = python_module("librdkafka", "consume", self.cluster.address, topic, *numbers)
        return watched(command, self.cluster, topic)

    def _idle(self) -> None:
        self.step("idle memory")
        time.sleep(self.plan.idle_seconds)
        memory = self.cluster.memory()
        self.result.figures["memory.idle_rss"] = memory.resident_mib
        self.result.figures["memory.idle_pss"] = memory.proportional_mib

    def _note(self, name: str, rate: float, cpu_seconds: float, stored: float) -> None:
        self.result.figures[name] = rate
        self.result.figures[f"cpu.{name}"] = cpu_seconds / (stored / 1e9)

    @contextmanager
    def _topic(self, name: str, partitions: int) -> Iterator[str]:
        """A topic for one measurement. A client that fails spoils its own figure, a dead broker the whole round."""
        self.step(name)
        os.sync()
        try:
            replicated.create(self.cluster, name, partitions)
            replicated.wait_in_sync(self.admin, name, partitions)
            try:
                yield name
            finally:
                replicated.delete(self.admin, name)
        except ANY_ERROR as error:
            self.result.failures[name] = str(error)
            if not self.cluster.is_running():
                raise StartError(f"a broker ended during {name}: {self.cluster.last_output()}") from error
