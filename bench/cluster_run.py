"""Rounds of the replicated set: two clusters in turns, and the other way round in the next round.

Before the first round each cluster is brought up once, warmed up, and asked for its maximum with one producer; half of
the slower one's is the rate at which the latency of both is measured in every round. A run that goes on after an
interruption keeps its rate.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from bench import java, process, report, store
from bench.cluster_figures import RATE_SHARE
from bench.cluster_round import Plan, Step, maximum, measured
from bench.run import QUIET_SECONDS
from bench.systems import Kafka, Klamm

RESULTS_NAME = "cluster"


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    plan: Plan
    rounds: int
    only: tuple[str, ...]
    settings: tuple[str, ...]
    rate: int | None
    resume: bool
    scratch: Path
    results: Path

    @property
    def path(self) -> Path:
        return self.results / f"{RESULTS_NAME}.jsonl"

    @property
    def systems(self) -> tuple[Klamm, Kafka]:
        return Klamm(settings=self.settings), Kafka()

    def wants(self, name: str) -> bool:
        return not self.only or any(name.startswith(prefix) or prefix.startswith(name + ".") for prefix in self.only)


def run(wish: Wish, tell: Step, step: Step) -> store.Run:
    """Measure all rounds that are missing and return the run."""
    header = _header(wish)
    current = store.last_run(wish.path) if wish.resume else None
    if current is None or not current.is_like(header):
        tell("a new run" if not wish.resume else "nothing like this to resume: a new run")
        current = store.Run(header)
        store.append(wish.path, header)
    java.compile_client()
    rate = wish.rate or (_agreed_rate(current, wish, tell, step) if wish.wants("latency") else 0)
    done = current.complete_rounds()
    for number in range(1, wish.rounds + 1):
        if number not in done:
            _one_round(number, current.identity, wish, rate, tell, step)
    finished = store.last_run(wish.path)
    assert finished is not None
    return finished


def _agreed_rate(current: store.Run, wish: Wish, tell: Step, step: Step) -> int:
    for system in wish.systems:
        if system.name not in current.maxima:
            found = maximum(system, wish.scratch / "cluster", wish.plan, step)
            current.maxima[system.name] = found
            line = {"kind": "maximum", "run": current.identity, "system": system.name, "records_per_second": found}
            store.append(wish.path, line)
        tell(f"{system.name}: at most {current.maxima[system.name]:,.0f} records of 1 KiB a second from one producer")
    return int(RATE_SHARE * min(current.maxima.values()))


def _one_round(number: int, identity: str, wish: Wish, rate: int, tell: Step, step: Step) -> None:
    klamm, kafka = wish.systems
    order: tuple[Klamm | Kafka, ...] = (klamm, kafka) if number % 2 == 0 else (kafka, klamm)
    for place, system in enumerate(order, start=1):
        busy = process.busy_share(QUIET_SECONDS)
        warning = f", though others use {busy:.0%} of the cores" if busy > report.BUSY else ""
        tell(f"round {number}: three brokers of {system.name}{warning}")
        result = measured(system, wish.scratch / "cluster", wish.plan, wish.wants, rate, step)
        for name, reason in result.failures.items():
            tell(f"[red]{system.name}, {name}: {reason}[/red]")
        store.append(
            wish.path,
            {
                "kind": "system", "run": identity, "round": number, "system": system.name, "place": place,
                "busy": round(busy, 3), "figures": result.figures, "failures": result.failures,
            },
        )  # fmt: skip


def _header(wish: Wish) -> dict[str, object]:
    return {
        "kind": "run",
        "set": "cluster",
        "run": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "plan": wish.plan.name,
        "systems": [system.name for system in wish.systems],
        "only": list(wish.only),
        "settings": list(wish.settings),
        "machine": store.machine(),
    }
