"""What one run is like: how long, how many brokers, which topics and clients, which faults. Drawn from its seed."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from klamm.chaos.faults import Fault, drawn_faults
from klamm.chaos.verdict import Place

REPLICAS, IN_SYNC = 3, 2

SETTINGS = {
    # Half a minute by default: a follower that was cut off for a few seconds would never leave the in-sync replicas.
    "replica.lag.time.max.ms": "2000",
    "leader.imbalance.check.interval.seconds": "2",
}


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    partitions: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlannedProducer:
    name: str
    is_idempotent: bool
    per_second: int
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float
    brokers: int
    topics: tuple[Topic, ...]
    producers: tuple[PlannedProducer, ...]
    late_reader_at: float
    """One consumer comes when the others have read for so long."""
    faults: tuple[Fault, ...]

    @property
    def places(self) -> list[Place]:
        return [Place(topic.name, partition) for topic in self.topics for partition in range(topic.partitions)]

    def with_faults(self, faults: tuple[Fault, ...]) -> "Plan":
        """The same, and these go wrong."""
        return replace(self, faults=faults)


def drawn_plan(seed: int, seconds: float, brokers: int, possible: Collection[str]) -> Plan:
    random = Random(f"{seed} plan")
    common = {"min.insync.replicas": str(IN_SYNC)}
    # Segments of a few seconds, so that logs are rolled, recovered and caught up with over several files.
    small = {**common, "segment.bytes": "1048576", "segment.ms": str(random.choice((2_000, 10_000, 604_800_000)))}
    topics = (Topic("orders", random.randint(2, 5), small), Topic("flushed", 2, {**common, "flush.messages": "1"}))
    names = [("exact-0", True), ("exact-1", True), ("plain-0", False)]
    return Plan(
        seed=seed,
        seconds=seconds,
        brokers=brokers,
        topics=topics,
        producers=tuple(_drawn_producer(random, name, is_idempotent) for name, is_idempotent in names),
        late_reader_at=random.uniform(0.3, 0.8) * seconds,
        faults=drawn_faults(seed, seconds, brokers, possible),
    )


def _drawn_producer(random: Random, name: str, is_idempotent: bool) -> PlannedProducer:
    timeout_ms = random.choice((3_000, 6_000, 12_000))
    settings = {
        "linger.ms": random.choice((0, 5, 50)),
        "compression.type": random.choice(("none", "none", "lz4", "zstd", "gzip", "snappy")),
        # A minute by default: who waits for a broker that was cut off would do nothing else in the whole run.
        "socket.timeout.ms": timeout_ms,
        "request.timeout.ms": timeout_ms - 1_000,
        # Brokers come back within seconds; so does the client.
        "reconnect.backoff.max.ms": 1_000,
    }
    return PlannedProducer(name, is_idempotent, random.choice((100, 200, 400)), settings)
