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
from confluent_kafka.admin import AdminClient, TopicMetadata

from bench import java, raw
from bench.batch import record_batch, records_that_fit
from bench.clusters import NODES, Cluster, prepared
from bench.crowd import Stretch, stretch
from bench.figures import CONSUMED, PARTITION_COUNTS, PRODUCER_COUNTS, SIZES
from bench.one_round import JAVA_BATCH_BYTES, Measured
from bench.start import StartError
from bench.systems import Kafka, Klamm
from bench.worker import ClientError, python_module, watched

MIN_IN_SYNC = (("min.insync.replicas", "2"),)
ALL = -1
WITHOUT_END = 1_000_000_000
IN_FLIGHT = 5
RETRY_SECONDS = 0.002
GIVE_UP_SECONDS = 120.0
LATENCY_BYTES = 1024
LATENCY_PARTITIONS = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """How long each client works; the first seconds of each do not count."""

    name: str
    seconds: float
    warmup_seconds: float
    latency_seconds: float
    latency_warmup_seconds: float
    system_warmup_seconds: float
    idle_seconds: float
    fill_bytes: int


FULL = Plan(
    name="full",
    seconds=4,
    warmup_seconds=2.5,
    latency_seconds=10,
    latency_warmup_seconds=4,
    system_warmup_seconds=5,
    idle_seconds=5,
    fill_bytes=300_000_000,
)
QUICK = Plan(
    name="quick",
    seconds=1,
    warmup_seconds=0.5,
    latency_seconds=2,
    latency_warmup_seconds=1,
    system_warmup_seconds=1,
    idle_seconds=1,
    fill_bytes=50_000_000,
)


@dataclass(frozen=True, slots=True)
class Case:
    """One produce measurement."""

    client: str
    size: int
    partitions: int
    producers: int

    @property
    def name(self) -> str:
        return f"produce.{self.client}.{self.size}.{self.partitions}.{self.producers}"


CASES = [
    Case(client, size, partitions, producers)
    for client in ("java", "librdkafka")
    for partitions in PARTITION_COUNTS
    for size in SIZES
    for producers in PRODUCER_COUNTS
]
QUICK_CASES = [case for case in CASES if case.producers == 3 and (case.client, case.partitions) != ("librdkafka", 100)]
MAXIMUM = Case("java", LATENCY_BYTES, LATENCY_PARTITIONS, 1)

System = Kafka | Klamm


def maximum(system: System, directory: Path, plan: Plan) -> float:
    """Records a second that one Java producer gets into a cluster that has been warmed up."""
    with prepared(system, directory) as cluster:
        _started(cluster)
        a_round = Round(cluster, plan, lambda name: True, Measured())
        a_round.warm_up()
        a_round.produce(MAXIMUM)
        if a_round.result.failures:
            raise StartError(f"{system.name}: {a_round.result.failures}")
        return a_round.result.figures[MAXIMUM.name] * 1e6 / MAXIMUM.size


def measured(system: System, directory: Path, plan: Plan, wanted: Callable[[str], bool], rate: int) -> Measured:
    """All figures of one system; latency at this many records a second."""
    result = Measured()
    with prepared(system, directory) as cluster:
        try:
            os.sync()
            result.figures["start.first_ack"] = _started(cluster)
            Round(cluster, plan, wanted, result).run(rate)
        except (StartError, raw.RefusedError, KafkaException, OSError) as error:
            result.failures["system"] = str(error)
    return result


@dataclass(slots=True)
class Round:
    cluster: Cluster
    plan: Plan
    wanted: Callable[[str], bool]
    result: Measured
    admin: AdminClient = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.cluster.address})

    def run(self, rate: int) -> None:
        if self.wanted("memory"):
            self._idle()
        self.warm_up()
        if self.wanted("latency"):
            self._latency(rate)
        self.cluster.forget_peak()
        for case in QUICK_CASES if self.plan is QUICK else CASES:
            if self.wanted(case.name):
                self.produce(case)
        self.result.figures["memory.load_rss"] = self.cluster.memory().peak_mib
        for partitions in PARTITION_COUNTS:
            for size in SIZES:
                self._consume(size, partitions)

    def warm_up(self) -> None:
        with self._topic("warm-up", 6) as topic:
            for size in SIZES:
                self._stretch(Case("java", size, 6, 3), topic, 0, self.plan.system_warmup_seconds)
            java.consume(self.cluster, topic, 0, self.plan.warmup_seconds)

    def produce(self, case: Case) -> None:
        with self._topic(case.name, case.partitions) as topic:
            seen = self._stretch(case, topic, self.plan.warmup_seconds, self.plan.seconds)
            bytes_per_record = self.cluster.stored_bytes(topic) / self._records(topic)
            rate = seen.stored_bytes / bytes_per_record * case.size / seen.seconds / 1e6
            self._note(case.name, rate, seen.cpu_seconds, seen.stored_bytes)
            if fewer := sum(len(part.isrs) < NODES for part in self._described(topic).partitions.values()):
                raise ClientError(f"{fewer} of {case.partitions} partitions were no longer in sync everywhere")

    def _stretch(self, case: Case, topic: str, warmup: float, seconds: float) -> Stretch:
        address = self.cluster.address
        if case.client == "java":
            command = java.perf_test(address, topic, case.size, WITHOUT_END, acks="all")
        else:
            numbers = (case.partitions, case.size, 0, WITHOUT_END, ALL)
            command = python_module("librdkafka", "produce", address, topic, *numbers)
        return stretch([command] * case.producers, self.cluster, topic, warmup, seconds)

    def _latency(self, rate: int) -> None:
        name = f"latency.{LATENCY_BYTES}"
        with self._topic(name, LATENCY_PARTITIONS) as topic:
            plan = self.plan
            work = java.paced(
                self.cluster, topic, rate, plan.latency_warmup_seconds, plan.latency_seconds, LATENCY_BYTES
            )
            for share in ("p50", "p99", "p999", "max"):
                self.result.figures[f"{name}.{share}"] = work.said[f"{share}_ms"]
            self.result.figures[f"cpu.{name}"] = work.cpu_seconds / (work.stored_bytes / 1e9)
            self.result.figures["latency.rate"] = rate

    def _consume(self, size: int, partitions: int) -> None:
        names = [f"consume.{client}.{size}.{partitions}" for client in CONSUMED[partitions]]
        names = [name for name in names if self.wanted(name)]
        if not names:
            return
        with self._topic(f"stored.{size}.{partitions}", partitions) as topic:
            self._fill(topic, size)
            bytes_per_record = self.cluster.stored_bytes(topic) / self._records(topic)
            for name in names:
                if ".java." in name:
                    work = java.consume(self.cluster, topic, self.plan.warmup_seconds, self.plan.seconds)
                else:
                    numbers = (partitions, size, self.plan.warmup_seconds, self.plan.seconds)
                    command = python_module("librdkafka", "consume", self.cluster.address, topic, *numbers)
                    work = watched(command, self.cluster, topic)
                records, seconds = work.said["records"], work.said["seconds"]
                self._note(name, records * size / seconds / 1e6, work.cpu_seconds, records * bytes_per_record)

    def _fill(self, topic: str, size: int) -> None:
        """A topic to consume: to each leader, requests with a batch for every partition it leads, until it is full."""
        batch = record_batch(size, records_that_fit(size, JAVA_BATCH_BYTES), int(time.time() * 1000))
        partitions = self._described(topic).partitions
        requests = self.plan.fill_bytes // (len(batch) * len(partitions))
        for number, node in enumerate(self.cluster.nodes):
            led = [partition for partition, state in partitions.items() if state.leader == number]
            connection = raw.Connection(node.port)
            frame = raw.produce_frame(topic, led, batch, acks=ALL)
            for index in range(requests if led else 0):
                connection.send(frame)
                if index >= IN_FLIGHT:
                    raw.checked_produce(connection.receive())
            for _ in range(min(requests, IN_FLIGHT) if led else 0):
                raw.checked_produce(connection.receive())
            connection.close()

    def _idle(self) -> None:
        time.sleep(self.plan.idle_seconds)
        memory = self.cluster.memory()
        self.result.figures["memory.idle_rss"] = memory.resident_mib
        self.result.figures["memory.idle_pss"] = memory.proportional_mib

    def _note(self, name: str, rate: float, cpu_seconds: float, stored: float) -> None:
        self.result.figures[name] = rate
        self.result.figures[f"cpu.{name}"] = cpu_seconds / (stored / 1e9)

    def _records(self, topic: str) -> int:
        """Records in the topic, once no client works any more and everything is on every replica."""
        consumer = java.counting_consumer(self.cluster.address)
        return consumer

    def _described(self, topic: str) -> TopicMetadata:
        return self.admin.list_topics(topic, timeout=GIVE_UP_SECONDS).topics[topic]

    @contextmanager
    def _topic(self, name: str, partitions: int) -> Iterator[str]:
        """A topic for one measurement. A client that fails spoils its own figure, a dead broker the rest of the round."""
        os.sync()
        try:
            _create(self.cluster, name, partitions)
            yield name
            for deleted in self.admin.delete_topics([name], operation_timeout=30).values():
                deleted.result()
        except (ClientError, raw.RefusedError, KafkaException, OSError) as error:
            self.result.failures[name] = str(error)
            if not self.cluster.is_running():
                raise StartError(f"a broker ended during {name}: {self.cluster.last_output()}") from error


def _started(cluster: Cluster) -> float:
    """Seconds from spawning three processes until a record with acks=all is acknowledged in a topic of theirs."""
    begin = time.perf_counter()
    cluster.start()
    _create(cluster, "first", 1)
    batch = record_batch(100, 1, int(time.time() * 1000))
    _until_done(cluster, lambda connection: raw.checked_produce(connection.ask(raw.produce_frame("first", [0], batch, acks=ALL))))
    return time.perf_counter() - begin
