"""Rounds: the floor, then the two systems one after the other, and the other way round in the next round.

Before the first round each system is started once and thrown away, so that neither pays alone for cold files (or for
Python's first compilation of its modules). With `--subject kafka` Kafka is compared with itself: the spread of those
ratios is the noise of the machine, and no difference smaller than it means anything.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import floor, java, process, report, store
from bench.one_round import Plan, measured
from bench.start import started
from bench.systems import ROOT, Kafka, Klamm, System

QUIET_SECONDS = 2.0
SCRATCH = ROOT / ".cache" / "bench"
RESULTS = ROOT / "bench" / "results"
SCRATCH_RESULTS = ROOT / ".cache" / "bench-results"


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    plan: Plan
    rounds: int
    subject: str
    only: tuple[str, ...]
    settings: tuple[str, ...]
    resume: bool
    scratch: Path
    results: Path

    def wants(self, name: str) -> bool:
        return not self.only or any(name.startswith(prefix) or prefix.startswith(name + ".") for prefix in self.only)

    def systems(self) -> tuple[System, System]:
        subject: System = Klamm(settings=self.settings)
        if self.subject == "kafka":
            subject = Kafka(name="kafka again", settings=self.settings)
        return subject, Kafka()


def run(wish: Wish, tell: Callable[[str], None]) -> store.Run:
    """Measure all rounds that are missing and return the run."""
    path = wish.results / "runs.jsonl"
    subject, kafka = wish.systems()
    header = _header(wish, subject, kafka)
    current = store.last_run(path) if wish.resume else None
    if current is None or not current.is_like(header):
        tell("a new run" if not wish.resume else "nothing like this to resume: a new run")
        current = store.Run(header)
        store.append(path, header)
    done = current.complete_rounds()
    java.compile_client()
    for system in (subject, kafka):
        tell(f"{system.name}: one start that does not count")
        with system.prepare(wish.scratch / "data") as node:
            started(node, "first")
            node.stop()
    for number in range(1, wish.rounds + 1):
        if number not in done:
            _one_round(number, current.identity, wish, path, tell)
    finished = store.last_run(path)
    assert finished is not None
    return finished


def _one_round(number: int, identity: str, wish: Wish, path: Path, tell: Callable[[str], None]) -> None:
    line = {"run": identity, "round": number}
    tell(f"round {number}: floor")
    figures = floor.measured(wish.scratch, wish.plan.floor_bytes)
    store.append(path, {"kind": "floor", **line, "system": "floor", "figures": figures})
    order = wish.systems() if number % 2 == 0 else tuple(reversed(wish.systems()))
    for place, system in enumerate(order, start=1):
        busy = process.busy_share(QUIET_SECONDS)
        warning = f", though others use {busy:.0%} of the cores" if busy > report.BUSY else ""
        tell(f"round {number}: {system.name}{warning}")
        result = measured(system, wish.scratch / "data", wish.plan, wish.wants)
        for name, reason in result.failures.items():
            tell(f"[red]{system.name}, {name}: {reason}[/red]")
        store.append(
            path,
            {
                "kind": "system", **line, "system": system.name, "place": place, "busy": round(busy, 3),
                "figures": result.figures, "seconds": result.seconds, "failures": result.failures,
            },
        )  # fmt: skip


def _header(wish: Wish, subject: System, kafka: System) -> dict[str, object]:
    identity = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "kind": "run",
        "run": identity,
        "plan": wish.plan.name,
        "systems": [subject.name, kafka.name],
        "only": list(wish.only),
        "settings": list(wish.settings),
        "machine": store.machine(),
    }
