"""Many runs, on several cores, until one breaks a promise; and what all of them reached together."""

import gc
import multiprocessing
import signal
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from klamm.sim.plan import GROUPS, Plan, drawn_plan
from klamm.sim.run import Outcome, Run


@dataclass(slots=True)
class Tally:
    """What runs came to, added up."""

    runs: int = 0
    simulated_ms: float = 0.0
    events: int = 0
    acknowledged: int = 0
    reads: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.runs += 1
        self.simulated_ms += outcome.simulated_ms
        self.events += outcome.events
        self.acknowledged += outcome.acknowledged
        self.reads += outcome.reads
        self.faults += outcome.faults
        self.operations += outcome.operations
        self.reached += outcome.reached


def outcome_of(plan: Plan, *, keeps_all: bool = False) -> Outcome:
    return Run(plan, keeps_all=keeps_all).outcome()


def outcome_of_seed(seed: int, without: Collection[str] = (), duration_ms: float | None = None) -> Outcome:
    return outcome_of(plan_of(seed, without, duration_ms))


def plan_of(seed: int, without: Collection[str] = (), duration_ms: float | None = None) -> Plan:
    """What the seed draws, with less trouble, or for another time. Without groups it draws what it drew before there
    were any."""
    plan = drawn_plan(seed, with_groups=GROUPS not in without).without(*without)
    return plan if duration_ms is None else plan.lasting(duration_ms)


def outcomes(
    seeds: Iterable[int], jobs: int, without: Collection[str] = (), duration_ms: float | None = None
) -> Iterator[Outcome]:
    """As they are done, in any order. Whoever has heard enough may stop listening."""
    outcome = partial(outcome_of_seed, without=without, duration_ms=duration_ms)
    if jobs == 1:
        yield from map(outcome, seeds)
        return
    # Ctrl-C reaches all of them; whoever listens to them ends them, without a stack trace of each. They are born with
    # it blocked, and so are those that follow them: the thread that forks these is made here, too.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        # Looking for circles takes a seventh of the time. A worker leaves some megabytes of them a run, and ends soon.
        with multiprocessing.get_context("fork").Pool(jobs, gc.disable, maxtasksperchild=50) as pool:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield from pool.imap_unordered(outcome, seeds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def shrunk(outcome: Outcome) -> Outcome:
    """A smaller run that breaks the same promise: fewer faults and operations, a shorter time."""
    assert outcome.failure is not None
    best = outcome
    for plan in _shorter(outcome.plan):
        found = outcome_of(plan)
        if _is_same(found, outcome):
            best = found
            break
    for name in (*best.plan.faults, *best.plan.operations, *best.plan.topics):
        found = outcome_of(best.plan.without(name))
        if _is_same(found, outcome):
            best = found
    return best


def _shorter(plan: Plan) -> Iterator[Plan]:
    for share in (0.1, 0.25, 0.5, 0.75):
        yield plan.lasting(plan.duration_ms * share)


def _is_same(found: Outcome, outcome: Outcome) -> bool:
    assert outcome.failure is not None
    return found.failure is not None and found.failure.promise == outcome.failure.promise
