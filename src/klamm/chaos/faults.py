"""What happens in a run and when: drawn from its seed before anything is started.

A fault says when it begins, how long it lasts, and whom it hits: a broker by number, or whoever leads a partition or
the cluster by then. Each seed has some kinds of faults and not others, often or rarely: a run in which everything goes
wrong hides what goes wrong when only some things do. Faults that break a broker (hard ones) hit a minority at a time;
only `everybody` kills all processes at once. Bad links come on top.
"""

from collections.abc import Collection
from dataclasses import dataclass
from random import Random

KINDS = {
    "kill": "kill -9 of a broker, which is started again",
    "everybody": "kill -9 of all brokers at once",
    "pause": "SIGSTOP, longer or shorter than a session, and SIGCONT",
    "restart": "SIGTERM, and started again",
    "cut": "a broker is cut off: from all others, one of them, its clients, or everybody",
    "oneway": "a broker does not hear the others, or is not heard",
    "slow": "a narrow link to a broker",
    "lossy": "packets to and from a broker are lost",
    "reset": "connections to a broker are reset",
    "disk": "a broker's disk is full",
}
HARD = frozenset({"kill", "everybody", "pause", "restart", "cut", "oneway", "disk"})
LINKS = frozenset({"cut", "oneway", "slow", "lossy", "reset"})
DISKS = frozenset({"disk"})

SECONDS = {
    "kill": (0.1, 8.0),
    "everybody": (0.1, 4.0),
    "pause": (1.0, 8.0),
    "restart": (0.1, 3.0),
    "cut": (1.0, 8.0),
    "oneway": (1.0, 8.0),
    "slow": (2.0, 10.0),
    "lossy": (2.0, 10.0),
    "reset": (0.1, 0.5),
    "disk": (1.0, 8.0),
}
WEIGHTS = {"everybody": 0.3, "restart": 0.6}
"""How often, beside the others at 1."""
SCOPES = ("brokers", "brokers", "one", "clients", "all")
FEWEST_KINDS = 4
FIRST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Whom:
    role: str
    """broker, leader (of a partition) or controller."""
    number: int
    """Which broker or partition, modulo how many there are."""


@dataclass(frozen=True, slots=True)
class Fault:
    at: float
    """Seconds since the run began."""
    kind: str
    seconds: float
    whom: Whom
    scope: str
    """Whom a bad link is to: brokers, one of them, clients, all."""
    amount: int
    """How bad: kilobits a second, or packets of a hundred. For one-way links: odd is deaf, even is mute."""

    @property
    def end(self) -> float:
        return self.at + self.seconds


def drawn_faults(seed: int, seconds: float, brokers: int, possible: Collection[str]) -> tuple[Fault, ...]:
    """`possible` are the kinds that may be; the same seed draws the same faults from the same kinds."""
    random = Random(f"{seed} faults")
    kinds = _drawn_kinds(random, [kind for kind in KINDS if kind in possible])
    if not kinds:
        return ()
    pace = random.choice((0.7, 1.5, 3.0))
    minority = (brokers - 1) // 2
    weights = [WEIGHTS.get(kind, 1.0) for kind in kinds]
    faults: list[Fault] = []
    now = FIRST_SECONDS
    while True:
        now += random.expovariate(1.0 / pace)
        (kind,) = random.choices(kinds, weights)
        length = min(random.uniform(*SECONDS[kind]), seconds / 3)
        at = _first_moment(faults, kind, now, minority)
        fault = Fault(round(at, 3), kind, round(length, 3), _drawn_whom(random), *_drawn_ways(random, kind))
        if now > seconds:
            return tuple(sorted(faults, key=lambda each: each.at))
        if fault.end <= seconds:
            faults.append(fault)
            # What had to wait holds up what comes after it, or those that wait would grow ever more.
            now = max(now, at)


def _drawn_kinds(random: Random, possible: list[str]) -> list[str]:
    count = min(len(possible), random.randint(FEWEST_KINDS, len(KINDS)))
    chosen = random.sample(possible, count)
    return [kind for kind in possible if kind in chosen]


def _drawn_whom(random: Random) -> Whom:
    return Whom(random.choice(("broker", "leader", "leader", "controller")), random.randrange(1_000))


def _drawn_ways(random: Random, kind: str) -> tuple[str, int]:
    scope = random.choice(SCOPES)
    amount = random.randint(100, 3_000) if kind == "slow" else random.randint(5, 40)
    return scope, amount


def _first_moment(faults: list[Fault], kind: str, now: float, minority: int) -> float:
    """When this may begin, from now on: not before enough brokers are well again."""
    allowed = 0 if kind == "everybody" else minority - 1
    while kind in HARD:
        going_on = [each for each in faults if each.kind in HARD and each.at <= now < each.end]
        everybody = [each for each in going_on if each.kind == "everybody"]
        if not everybody and len(going_on) <= allowed:
            break
        now = min(each.end for each in everybody or going_on) + 0.001
    return now
