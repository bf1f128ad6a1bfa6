"""What is measured, in which unit, which way is better, and what Klamm is to reach.

A ratio is Klamm's figure divided by Kafka's of the same round. Three targets are no such ratio: idle memory is wanted
below a number of MiB, and processor time below a multiple of the floor (see `floor.py`) of the same round.
MB and GB are 10^6 and 10^9 bytes. Throughput counts the records' values; processor time counts stored bytes, which is
what the floor moves too.
"""

from dataclasses import dataclass
from enum import Enum

SIZES = {100: "100 B", 1024: "1 KiB"}
CLIENTS = {"java": "Java client", "librdkafka": "librdkafka"}


class Against(Enum):
    """What a target compares Klamm's figure with."""

    KAFKA = "× Kafka"
    FLOOR = "× floor"
    NOTHING = ""


@dataclass(frozen=True, slots=True)
class Target:
    limit: float
    against: Against
    at_least: bool = False

    def is_reached(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def words(self, unit: str) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{sign} {self.limit:g} {self.against.value or unit}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report. `floor` names the floor's loop that moves the same bytes."""

    name: str
    label: str
    section: str
    unit: str
    more_is_better: bool = False
    target: Target | None = None
    floor: str | None = None


FASTER = Target(1.2, Against.KAFKA, at_least=True)
QUICKER = Target(0.7, Against.KAFKA)
NEAR_THE_FLOOR = Target(1.5, Against.FLOOR)


def _figures() -> list[Figure]:
    figures = []
    for verb in ("produce", "consume"):
        section = f"{verb} throughput, 6 partitions" + (", acks=1" if verb == "produce" else "")
        for client, title in CLIENTS.items():
            for size, words in SIZES.items():
                name = f"{verb}.{client}.{size}"
                figures.append(Figure(name, f"{verb} {words}, {title}", section, "MB/s", True, FASTER))
        figures.append(Figure(f"{verb}.raw.1024", f"{verb} 1 KiB, raw sockets", section, "MB/s", True))
    for client, title in [*CLIENTS.items(), ("raw", "raw sockets")]:
        for share in ("p50", "p99"):
            target = None if client == "raw" else QUICKER
            label = f"latency {share}, {title}"
            figures.append(Figure(f"latency.{client}.{share}", label, "one message in flight", "ms", target=target))
    start = Target(0.1, Against.KAFKA)
    figures.append(Figure("start.first_ack", "start to first acknowledged record", "start", "s", target=start))
    idle = Target(60, Against.NOTHING)
    figures += [
        Figure("memory.idle_rss", "memory idle, resident", "memory", "MiB", target=idle),
        Figure("memory.idle_pss", "memory idle, proportional share", "memory", "MiB"),
        Figure("memory.load_rss", "memory while producing, highest resident", "memory", "MiB"),
    ]
    for verb, loop in (("produce", "store"), ("consume", "serve")):
        section = "broker's processor time"
        for client, title in CLIENTS.items():
            for size, words in SIZES.items():
                name = f"cpu.{verb}.{client}.{size}"
                label = f"CPU {verb} {words}, {title}"
                figures.append(Figure(name, label, section, "s/GB", target=NEAR_THE_FLOOR, floor=loop))
        name, label = f"cpu.{verb}.raw.1024", f"CPU {verb} 1 KiB, raw sockets"
        figures.append(Figure(name, label, section, "s/GB", target=NEAR_THE_FLOOR, floor=loop))
    return figures


FIGURES: list[Figure] = _figures()
FLOORS = {
    "store": "floor of produce: receive, write",
    "answer": "with an answer every 97 kB",
    "serve": "floor of consume: sendfile",
}
