"""What one run is like: drawn from its seed, before anything happens.

Each seed has some of the faults and not others, some often and some rarely (swarm testing): a run in which everything
goes wrong at once hides what goes wrong when only one thing does.
"""

from dataclasses import dataclass, field, replace
from random import Random

from klamm.sim.topics import EXTRA_TOPICS, drawn_flush_ms

FAULTS = (
    "kill", "power", "pause", "stop", "die in a step", "cut", "isolate", "one way", "reset", "slow link", "slow disk",
    "disk error", "disk full", "wall clock", "everybody killed", "wipe", "rot",
)  # fmt: skip
LATER_FAULTS = (
    "old file", "crash loop", "majority returns", "flap", "slow line", "drift", "strobe", "rotten tails", "left behind",
    "blackout", "flush error",
)  # fmt: skip
"""Drawn from a stream of their own."""
DAMAGE_FAULTS = ("lost names", "rotten metadata")
"""And these from a third."""
HEARING_FAULTS = ("deaf leader",)
"""And these from another one, so that runs without them are what they were before there were any."""
MEMBER_FAULTS = ("member killed", "member leaves", "member paused", "member doubled", "rebalance storm")
"""Of runs that have groups."""
FORGED_FAULTS = ("forged request",)
"""Drawn from a stream of their own again, and in calm runs as often as in others."""
ALL_FAULTS = (*FAULTS, *LATER_FAULTS, *DAMAGE_FAULTS, *HEARING_FAULTS, *MEMBER_FAULTS, *FORGED_FAULTS)
OPERATIONS = ("recreate", "add partition", "reassign", "elect preferred", "configure", "change voters")
OPERATIONS_OF = {"trimmed": "delete records", "rescued": "elect unclean", "crowd": "change the crowd"}
"""What is done to a topic that not every run has."""
CALM, CALM_FAULTS = 0.6, 0.25
"""So often a run that has groups has only so many of the other faults: members come to nothing while all is down. The
same where leaders do not hear the controller: they have to lead for a while."""
DEAF = 0.3
"""So many runs have such leaders."""
LEAST_OF_GROUPS_MS = 15_000.0
"""Sessions have to end, and others to take over."""
GROUPS = "groups"
STRANGER = "stranger"
FLUSH_TIMES = "flush times"
CLASSIC, CONSUMER, MIXED = "classic", "consumer", "mixed"
"""What members of a group speak; in a mixed one, some this and some that."""


@dataclass(frozen=True, slots=True)
class GroupPlan:
    name: str
    topic: str
    protocol: str
    members: int
    static: int
    """How many of them have an instance id."""


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    brokers: int
    voters: int
    faults: dict[str, float]
    """How often each happens, in milliseconds between two of them on average."""
    operations: tuple[str, ...]
    operation_ms: float
    duration_ms: float
    producers: int
    consumers: int
    latency_ms: float
    racks: int = 0
    """How many racks the brokers stand in; with none, nobody reads from followers."""
    topics: tuple[str, ...] = ()
    """Those that not every run has."""
    groups: tuple[GroupPlan, ...] = ()
    stranger_ms: float = 0.0
    """How often somebody speaks in a broker's name, on average; never if 0."""
    flush_ms: dict[str, str] = field(default_factory=dict)
    """By topic."""

    def without(self, *names: str) -> "Plan":
        """The same with fewer faults, operations or topics, or without groups."""
        faults = {name: mean for name, mean in self.faults.items() if name not in names}
        operations = tuple(name for name in self.operations if name not in names)
        topics = tuple(name for name in self.topics if name not in names)
        groups = () if GROUPS in names else self.groups
        stranger_ms = 0.0 if STRANGER in names else self.stranger_ms
        if not groups:
            faults = {name: mean for name, mean in faults.items() if name not in MEMBER_FAULTS}
        flush_ms = {} if FLUSH_TIMES in names else self.flush_ms
        return replace(
            self,
            faults=faults,
            operations=operations,
            topics=topics,
            groups=groups,
            stranger_ms=stranger_ms,
            flush_ms=flush_ms,
        )

    def lasting(self, duration_ms: float) -> "Plan":
        return replace(self, duration_ms=duration_ms)


def rack_names(count: int) -> tuple[str, ...]:
    return tuple(f"rack-{number}" for number in range(count))


def drawn_plan(seed: int, *, with_groups: bool = True) -> Plan:
    """Without groups a seed is what it was before there were any."""
    random = Random(f"{seed} plan")
    brokers = random.choice((3, 3, 4, 5))
    voters = random.choice((3, 5)) if brokers == 5 else 3
    faults = _drawn_faults(random, FAULTS, (0.2, 0.5)) | _drawn_faults(
        Random(f"{seed} later"), LATER_FAULTS, (0.1, 0.3)
    )
    faults |= _drawn_faults(Random(f"{seed} damage"), DAMAGE_FAULTS, (0.1, 0.3))
    operations = [name for name in OPERATIONS if name != "change voters" and random.random() < 0.5]
    if Random(f"{seed} voters").random() < (0.6 if voters == 5 else 0.3):
        # Of three, hardly a disk may be lost while voters leave: so not too often.
        operations.append("change voters")
    of_data = Random(f"{seed} data")
    racks = of_data.choice((0, 2, 3))
    topics = tuple(name for name in EXTRA_TOPICS if of_data.random() < 0.3)
    groups = _drawn_groups(Random(f"{seed} groups")) if with_groups else ()
    if groups:
        calm = Random(f"{seed} calm")
        if calm.random() < CALM:
            faults = {name: mean for name, mean in faults.items() if calm.random() < CALM_FAULTS}
        faults |= _drawn_faults(Random(f"{seed} members"), MEMBER_FAULTS, (0.2, 0.6), (1_000.0, 2_500.0, 6_000.0))
    hearing = Random(f"{seed} hearing")
    if hearing.random() < DEAF:
        if hearing.random() < CALM:
            kept = {name for name in faults if hearing.random() < CALM_FAULTS or name in MEMBER_FAULTS}
            faults = {name: mean for name, mean in faults.items() if name in kept}
        faults |= {name: hearing.choice((1_500.0, 4_000.0)) for name in HEARING_FAULTS}
    faults |= _drawn_faults(Random(f"{seed} forged"), FORGED_FAULTS, (0.4, 0.4), (30.0, 300.0, 3_000.0))
    operations += [done for name, done in OPERATIONS_OF.items() if name in topics]
    return Plan(
        seed=seed,
        brokers=brokers,
        voters=voters,
        faults=faults,
        operations=tuple(operations),
        operation_ms=random.choice((400.0, 1_500.0)),
        duration_ms=max(random.choice((8_000.0, 15_000.0, 25_000.0)), LEAST_OF_GROUPS_MS if groups else 0.0),
        producers=random.choice((2, 3, 4)),
        consumers=random.choice((1, 2)),
        latency_ms=random.choice((0.2, 0.5, 2.0)),
        racks=racks,
        topics=topics,
        groups=groups,
        stranger_ms=Random(f"{seed} stranger").choice((0.0, 0.0, 50.0, 400.0)),
        flush_ms=drawn_flush_ms(Random(f"{seed} flushing")),
    )


def _drawn_groups(random: Random) -> tuple[GroupPlan, ...]:
    """In half of the runs, one or two."""
    count = random.choice((0, 0, 1, 2))
    groups = []
    for number in range(count):
        members = random.choice((1, 2, 3, 3, 4))
        groups.append(
            GroupPlan(
                name=f"group-{number}",
                topic=random.choice(("steady", "flushed")),
                protocol=random.choice((CLASSIC, CONSUMER, MIXED)),
                members=members,
                static=random.choice((0, random.randint(0, members))),
            )
        )
    return tuple(groups)


def _drawn_faults(
    random: Random,
    names: tuple[str, ...],
    shares: tuple[float, float],
    means_ms: tuple[float, ...] = (1_500.0, 4_000.0, 10_000.0),
) -> dict[str, float]:
    return {name: random.choice(means_ms) for name in names if random.random() < random.choice(shares)}
