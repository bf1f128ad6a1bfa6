"""Results as lines of JSON, appended as they are measured, so that an interrupted run can go on where it stopped.

A run begins with one line that says where and how it was measured; then comes one line per round for the floor and for
each system. A round counts when all its lines are there; a round measured again replaces the earlier one.
Nothing here names a machine or a path.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import confluent_kafka

from bench.systems import jars_directory

Figures = dict[str, float]


@dataclass(slots=True)
class Run:
    """A run read back: its header, and per round the figures of the floor and of each system."""

    header: dict[str, Any]
    rounds: dict[int, dict[str, Figures]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    short: set[str] = field(default_factory=set)
    busiest: float = 0.0
    maxima: Figures = field(default_factory=dict)

    @property
    def identity(self) -> str:
        return str(self.header["run"])

    @property
    def systems(self) -> list[str]:
        return list(self.header["systems"])

    @property
    def is_cluster(self) -> bool:
        """The replicated set, with three brokers; it has no floor."""
        return bool(self.header.get("set") == "cluster")

    @property
    def is_noise(self) -> bool:
        """Kafka compared with itself, which no target is meant for."""
        return self.systems[0] != "klamm"

    def is_like(self, header: dict[str, Any]) -> bool:
        """Asked for the same way on a machine of the same kind: its rounds may be continued."""
        return {**self.header, "run": ""} == {**header, "run": ""}

    def complete_rounds(self) -> list[int]:
        needed = set(self.systems) if self.is_cluster else {"floor", *self.systems}
        return [number for number, measured in sorted(self.rounds.items()) if needed <= set(measured)]


def append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lines:
        lines.write(json.dumps(line) + "\n")
        lines.flush()
        os.fsync(lines.fileno())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def last_run(path: Path, shortest_seconds: float = 5.0) -> Run | None:
    run = None
    if not path.exists():
        return None
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if line["kind"] == "run":
            run = Run(line)
            continue
        assert run is not None and line["run"] == run.identity, "a run's lines stand together"
        if line["kind"] == "maximum":
            run.maxima[line["system"]] = line["records_per_second"]
            continue
        run.rounds.setdefault(line["round"], {})[line["system"]] = line["figures"]
        run.busiest = max(run.busiest, line.get("busy", 0.0))
        for name, reason in line.get("failures", {}).items():
            run.failures.append(f"round {line['round']}, {line['system']}, {name}: {reason}")
        run.short |= {name for name, seconds in line.get("seconds", {}).items() if seconds < shortest_seconds}
    return run


def machine() -> dict[str, Any]:
    """What a reader needs to judge the numbers, and nothing that names this machine."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    java_version = re.search(r'version "([^"]+)"', java)
    kafka = next(jars_directory().glob("kafka-clients-*.jar")).stem.removeprefix("kafka-clients-")
    try:
        klamm = importlib.metadata.version("klamm")
    except importlib.metadata.PackageNotFoundError:
        klamm = "from source"
    return {
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "python": platform.python_version(),
        "java": java_version.group(1) if java_version else "unknown",
        "kafka": kafka,
        "librdkafka": confluent_kafka.libversion()[0],
        "klamm": klamm,
    }
