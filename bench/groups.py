"""Rounds of groups: in each part both brokers are there, and are measured in alternate steps of a second or less.

While one is measured the other one is idle, so what others do on the machine meets both alike; the next round begins
with the other one. A part of a round is a line of results for each system; `--resume` goes on with the parts that the
last run is missing.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import process, report, store
from bench.group_lines import WrongAnswerError
from bench.group_round import Plan, Steps, steps
from bench.run import QUIET_SECONDS
from bench.start import StartError
from bench.systems import Kafka, Klamm

# The first would put a wait of three seconds into every first rebalance, the second one of a second between two
# assignments; what is to be seen is the work.
SETTINGS = ("group.initial.rebalance.delay.ms=0", "group.consumer.assignment.interval.ms=0")

Turns = dict[tuple[int, str, str], store.Figures]


@dataclass(slots=True)
class GroupRun:
    """A run read back: figures by round, part and system."""

    header: dict[str, Any]
    turns: Turns = field(default_factory=dict)
    busy: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def series(self, part: str, system: str, name: str) -> dict[int, float]:
        found = {key[0]: figures for key, figures in self.turns.items() if key[1:] == (part, system)}
        return {number: figures[name] for number, figures in sorted(found.items()) if name in figures}

    def counts(self, part: str) -> list[int]:
        """How many members the groups of a curve had."""
        names = {name for key, figures in self.turns.items() if key[1] == part for name in figures}
        return sorted({int(name.partition(".")[0]) for name in names})

    def rounds(self) -> int:
        return len({number for number, _, _ in self.turns})


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    plan: Plan
    rounds: int
    parts: tuple[str, ...]
    settings: tuple[str, ...]
    resume: bool
    scratch: Path
    results: Path

    @property
    def path(self) -> Path:
        return self.results / "groups.jsonl"

    @property
    def systems(self) -> tuple[Klamm, Kafka]:
        return Klamm(settings=(*SETTINGS, *self.settings)), Kafka(settings=SETTINGS)


def run(wish: Wish, tell: Callable[[str], None], finished: Callable[[GroupRun], object]) -> GroupRun:
    """Measure all turns that are missing. `finished` is told the run after each one."""
    header = _header(wish)
    current = last_run(wish.path) if wish.resume else None
    if current is None or {**current.header, "run": ""} != {**header, "run": ""}:
        tell("a new run" if not wish.resume else "nothing like this to resume: a new run")
        store.append(wish.path, header)
        current = GroupRun(header)
    for number in range(1, wish.rounds + 1):
        for part in wish.parts:
            if any((number, part, system.name) not in current.turns for system in wish.systems):
                for line in _part(number, part, current, wish, tell):
                    store.append(wish.path, line)
                current = last_run(wish.path)
                assert current is not None
                finished(current)
    return current


def last_run(path: Path) -> GroupRun | None:
    found = None
    for text in path.read_text().splitlines() if path.exists() else []:
        line = json.loads(text)
        if line["kind"] == "run":
            found = GroupRun(line)
            continue
        assert found is not None and line["run"] == found.header["run"], "a run's lines stand together"
        found.busy.append(line["busy"])
        if line["failure"]:
            found.failures.append(f"round {line['round']}, {line['part']}, {line['system']}: {line['failure']}")
        else:
            found.turns[line["round"], line["part"], line["system"]] = line["figures"]
    return found


def _part(number: int, part: str, current: GroupRun, wish: Wish, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    busy = process.busy_share(QUIET_SECONDS)
    warning = f", though others use {busy:.0%} of the cores" if busy > report.BUSY else ""
    tell(f"round {number}: {part}{warning}")
    figures: dict[str, store.Figures] = {system.name: {} for system in wish.systems}
    turns = {
        system.name: steps(system, wish.scratch / system.name, part, wish.plan, figures[system.name])
        for system in (wish.systems if number % 2 == 0 else reversed(wish.systems))
    }
    failures = _alternate(turns)
    for name, failure in failures.items():
        tell(f"[red]{name}: {failure}[/red]")
    return [
        {
            "kind": "turn", "run": current.header["run"], "round": number, "part": part, "system": name,
            "busy": round(busy, 3), "figures": figures[name], "failure": failures.get(name, ""),
        }
        for name in figures
    ]  # fmt: skip


def _alternate(turns: dict[str, Steps]) -> dict[str, str]:
    """A step of each in turn, until all are done; what went wrong, by name."""
    failures = {}
    try:
        while turns:
            for name in list(turns):
                try:
                    next(turns[name])
                except StopIteration:
                    del turns[name]
                except (WrongAnswerError, StartError, OSError) as problem:
                    failures[name] = f"{type(problem).__name__}: {problem}"
                    del turns[name]
    finally:
        for steps_left in turns.values():
            steps_left.close()
    return failures


def _header(wish: Wish) -> dict[str, Any]:
    return {
        "kind": "run",
        "set": "groups",
        "run": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "plan": wish.plan.name,
        "parts": list(wish.parts),
        "settings": list(wish.settings),
        "machine": store.machine(),
    }
