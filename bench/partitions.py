"""One node with 10, 100, 1,000 and 10,000 partitions: what does a partition cost, and does a produce notice the others?

Two shapes, because they stress different things: topics of 100 partitions, and topics of one partition each. For each
count, on an empty directory: create them (100 partitions a request, until the last one is served); memory and
descriptors; one record into every partition (files appear); then single produce requests of one record of 100 bytes,
acks=1, one in flight, round robin over all partitions, once unmeasured for the JVM's sake and once measured; a clean
stop and restart; another record into every partition, kill -9, restart. Restarts are timed from the process's start to
the first acknowledged record in the last topic.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from rich.console import Console

from bench import partitions_report, process, raw, store
from bench.batch import record_batch
from bench.start import started
from bench.systems import Kafka, Klamm, Node, System

SHAPES = {"wide": "topics of 100 partitions", "narrow": "topics of one partition"}
PARTITIONS_PER_REQUEST = 100
SETTLE_SECONDS = 2

Topics = list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    system: str
    counts: tuple[int, ...]
    shapes: tuple[str, ...]
    produces: int
    settings: tuple[str, ...]
    scratch: Path
    results: Path

    def chosen_system(self) -> System:
        return Klamm(settings=self.settings) if self.system == "klamm" else Kafka(settings=self.settings)


def run(wish: Wish, console: Console) -> int:
    path = wish.results / "partitions.jsonl"
    system = wish.chosen_system()
    machine = store.machine()
    for shape in wish.shapes:
        for count in wish.counts:
            now = time.strftime("%H:%M:%S")
            console.print(f"{now} {system.name}: {count} partitions in {SHAPES[shape]}", highlight=False)
            figures = measured(system, wish.scratch / "data", topics_of(shape, count), wish.produces)
            line = {"system": system.name, "shape": shape, "partitions": count, "figures": figures, "machine": machine}
            store.append(path, line)
            curves = partitions_report.read(path)
            (wish.results / "partitions.md").write_text(partitions_report.markdown(curves))
            partitions_report.draw(curves, wish.results / "partitions.png")
    console.print(partitions_report.table(partitions_report.read(path)))
    return 0


def topics_of(shape: str, count: int) -> Topics:
    if shape == "narrow":
        return [(f"topic-{index}", 1) for index in range(count)]
    width = min(count, 100)
    return [(f"topic-{index}", width) for index in range(count // width)]


def measured(system: System, directory: Path, topics: Topics, produces: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    with system.prepare(directory) as node:
        figures["start_seconds"] = started(node, "first").first_ack
        figures["empty_mib"] = process.memory(node.pid).resident_mib
        figures["create_seconds"] = _create(node, topics)
        time.sleep(SETTLE_SECONDS)
        figures["created_mib"] = process.memory(node.pid).resident_mib
        figures["created_descriptors"] = process.open_descriptors(node.pid)
        _measure_produce(node, topics, produces, figures)
        figures["memory_mib"] = process.memory(node.pid).resident_mib
        figures["proportional_mib"] = process.memory(node.pid).proportional_mib
        figures["descriptors"] = process.open_descriptors(node.pid)
        figures["memory_maps"] = process.memory_maps(node.pid)
        begin = time.perf_counter()
        node.stop()
        figures["stop_seconds"] = time.perf_counter() - begin
        last_topic = topics[-1][0]
        start = started(node, last_topic, create=False)
        figures["clean_answer_seconds"], figures["clean_ack_seconds"] = start.first_answer, start.first_ack
        time.sleep(SETTLE_SECONDS)
        figures["restarted_mib"] = process.memory(node.pid).resident_mib
        _produce(node, _requests(topics))
        node.kill()
        start = started(node, last_topic, create=False)
        figures["killed_answer_seconds"], figures["killed_ack_seconds"] = start.first_answer, start.first_ack
    return figures


def _create(node: Node, topics: Topics) -> float:
    connection = raw.Connection(node.port, timeout_seconds=600)
    at_once = max(1, PARTITIONS_PER_REQUEST // topics[0][1])
    begin = time.perf_counter()
    for first in range(0, len(topics), at_once):
        raw.create_topics(connection, topics[first : first + at_once])
    raw.wait_until_served(connection, topics[-1:])
    elapsed = time.perf_counter() - begin
    connection.close()
    return elapsed


def _measure_produce(node: Node, topics: Topics, produces: int, figures: dict[str, float]) -> None:
    once = _requests(topics)
    first = _produce(node, once)
    rounds = -(-produces // len(once))
    many = (once * rounds)[: max(produces, len(once))]
    _produce(node, many)
    cpu_before = process.cpu_seconds(node.pid)
    latencies = _produce(node, many)
    cpu_spent = process.cpu_seconds(node.pid) - cpu_before
    figures["first_produce_ms"] = median(first)
    figures["produce_ms"] = median(latencies)
    figures["produce_p99_ms"] = quantiles(latencies, n=100)[98]
    figures["produce_cpu_us"] = cpu_spent / len(many) * 1e6


def _requests(topics: Topics) -> list[bytes]:
    """One request for each partition: neighbours in time are neighbours in no topic, if there are several."""
    batch = record_batch(100, 1, int(time.time() * 1000))
    widest = max(width for _, width in topics)
    places = [(name, index) for index in range(widest) for name, width in topics if index < width]
    return [raw.produce_frame(name, [index], batch) for name, index in places]


def _produce(node: Node, requests: list[bytes]) -> list[float]:
    """Milliseconds of each request, one in flight. A partition that is not served yet is asked again."""
    connection = raw.Connection(node.port)
    latencies = []
    for request in requests:
        begin = time.perf_counter()
        while True:
            try:
                raw.checked_produce(connection.ask(request))
                break
            except raw.RefusedError:
                time.sleep(0.001)
        latencies.append((time.perf_counter() - begin) * 1000)
    connection.close()
    return latencies
