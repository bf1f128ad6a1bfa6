"""What the replicated set measures: three brokers, replication 3, min.insync.replicas 2, acks=all.

Throughput counts the records' values as one copy, processor time is that of the three brokers together per GB of
batches as the client sent them, memory is that of the three together.
"""

from dataclasses import dataclass

from bench.figures import CLIENTS, FASTER, QUICKER, SIZES, Figure

PARTITION_COUNTS = (6, 100)
PRODUCER_COUNTS = {1: "1 producer", 3: "3 producers"}


@dataclass(frozen=True, slots=True)
class Case:
    """One way to produce."""

    client: str
    size: int
    partitions: int
    producers: int

    @property
    def name(self) -> str:
        return f"produce.{self.client}.{self.size}.{self.partitions}.{self.producers}"

    @property
    def label(self) -> str:
        place = f"{self.partitions} partitions, {PRODUCER_COUNTS[self.producers]}"
        return f"produce {SIZES[self.size]}, {place}, {CLIENTS[self.client]}"


CASES = [
    Case(client, size, partitions, producers)
    for client in CLIENTS
    for partitions in PARTITION_COUNTS
    for size in SIZES
    for producers in PRODUCER_COUNTS
]
QUICK_CASES = [case for case in CASES if case.producers == 3 and (case.client == "java" or case.partitions == 6)]

# The maximum that the fixed rate of the latency measurement is half of.
MAXIMUM = LATENCY = Case("java", 1024, 6, 1)
RATE_SHARE = 0.5

# Which clients consume what; the second opinion is asked once.
CONSUMED = {
    (size, partitions): ("java", "librdkafka") if partitions == 6 else ("java",)
    for partitions in PARTITION_COUNTS
    for size in SIZES
}


def _figures() -> list[Figure]:
    throughput = [(case.name, case.label) for case in CASES]
    for (size, partitions), clients in CONSUMED.items():
        for client in clients:
            label = f"consume {SIZES[size]}, {partitions} partitions, {CLIENTS[client]}"
            throughput.append((f"consume.{client}.{size}.{partitions}", label))
    figures = [Figure(name, label, name.split(".")[0], "MB/s", True, FASTER) for name, label in throughput]
    for share in ("p50", "p99", "p999", "max"):
        target = QUICKER if share == "p99" else None
        figures.append(Figure(f"latency.{share}", f"end-to-end latency {share}", "fixed rate", "ms", target=target))
    figures.append(Figure("latency.rate", "the fixed rate: records of 1 KiB a second", "fixed rate", "1/s"))
    figures += [
        Figure("start.first_ack", "start to first acknowledged record", "start", "s"),
        Figure("memory.idle_rss", "memory idle, resident, 3 nodes", "memory", "MiB"),
        Figure("memory.idle_pss", "memory idle, proportional share, 3 nodes", "memory", "MiB"),
        Figure("memory.load_rss", "memory while producing, highest resident, 3 nodes", "memory", "MiB"),
    ]
    figures += [Figure(f"cpu.{name}", f"CPU {label}", "brokers' processor time", "s/GB") for name, label in throughput]
    figures.append(Figure("cpu.latency", "CPU at the fixed rate", "brokers' processor time", "s/GB"))
    return figures


CLUSTER_FIGURES: list[Figure] = _figures()
