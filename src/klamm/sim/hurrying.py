"""What a run changes about time and size, so that what takes hours in life comes about within its seconds.

Some seeds keep little of the metadata log, so that who comes late has to load a snapshot; some have leaders that lose
patience with slow followers soon; some note often up to where logs are flushed, some flush all topics after a while or
after some records. Drawn from a stream of its own. And coordinators load what they have of a log in small bites, and
decisions are made and taken up in small slices.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from klamm import slicing
from klamm.broker import loading
from klamm.quorum import raft
from klamm.sim.plan import HEARING_FAULTS, Plan
from klamm.sim.topics import FLUSH_MS

CLEANING_MS = 2_000.0
"""How often old snapshots and segments of the metadata log are looked for; Kafka's minute is longer than most lives."""
SLICE_BYTES = 2_000
"""So much of a log of groups is loaded at a time."""
REPLAYED_AT_ONCE = 5
ELEMENTS_A_SLICE = (1, 2, 5, 12)
"""So much of a decision is made, and taken up, at a time; in some runs one thing at a time."""


def drawn_settings(plan: Plan) -> dict[str, str]:
    random = Random(f"{plan.seed} hurrying")
    settings = {}
    if random.random() < 0.5:
        settings["metadata.max.retention.bytes"] = random.choice(("1", "20000"))
    if random.random() < 0.5:
        settings |= _short_patience(random)
    elif not plan.faults.keys().isdisjoint(HEARING_FAULTS):
        # Followers fall behind before whoever does not hear the controller is taken for dead.
        settings |= _short_patience(Random(f"{plan.seed} patience"))
    if random.random() < 0.5:
        settings["log.flush.offset.checkpoint.interval.ms"] = "1000"
    if random.random() < 0.2:
        settings["log.flush.interval.ms"] = random.choice(FLUSH_MS)
    if random.random() < 0.1:
        settings["log.flush.interval.messages"] = random.choice(("1", "7"))
    return settings


def _short_patience(random: Random) -> dict[str, str]:
    return {
        "replica.lag.time.max.ms": random.choice(("600", "1500")),
        "replica.fetch.wait.max.ms": random.choice(("100", "500")),
    }


@contextmanager
def hurried(seed: int) -> Iterator[None]:
    before = raft.CLEANING_MS, loading.SLICE_BYTES, loading.REPLAYED_AT_ONCE, slicing.ELEMENTS_A_SLICE
    raft.CLEANING_MS, loading.SLICE_BYTES, loading.REPLAYED_AT_ONCE = CLEANING_MS, SLICE_BYTES, REPLAYED_AT_ONCE
    slicing.ELEMENTS_A_SLICE = Random(f"{seed} slices").choice(ELEMENTS_A_SLICE)
    try:
        yield
    finally:
        raft.CLEANING_MS, loading.SLICE_BYTES, loading.REPLAYED_AT_ONCE, slicing.ELEMENTS_A_SLICE = before
