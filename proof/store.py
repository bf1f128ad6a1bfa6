"""Results as lines of JSON, appended as they come, so that a proof that was interrupted goes on where it stopped.

A campaign begins with one line that says on what kind of machine and with which versions; what follows belongs to it.
Nothing here names a machine or a path.
"""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

import confluent_kafka

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "proof" / "results"

Line = dict[str, Any]


class Store:
    """The lines of one proof. `fresh` begins a campaign; otherwise the last one is continued."""

    def __init__(self, directory: Path, name: str, fresh: bool = False) -> None:
        self.directory, self.name = directory, name
        self.path = directory / f"{name}.jsonl"
        lines = _read(self.path)
        starts = [number for number, line in enumerate(lines) if line["kind"] == "campaign"]
        if fresh or not starts:
            self.header: Line = {"kind": "campaign", **_circumstances()}
            self.lines: list[Line] = []
            self._write(self.header)
        else:
            self.header, self.lines = lines[starts[-1]], lines[starts[-1] + 1 :]

    def append(self, kind: str, **values: Any) -> Line:
        line: Line = {"kind": kind, **values}
        self.lines.append(line)
        self._write(line)
        return line

    def of(self, kind: str, **wanted: Any) -> list[Line]:
        matching = {"kind": kind, **wanted}
        return [line for line in self.lines if all(line.get(name) == value for name, value in matching.items())]

    def write_summary(self, text: str) -> Path:
        path = self.directory / f"{self.name}.md"
        path.write_text(f"{text.rstrip()}\n\n{_described(self.header)}\n")
        return path

    def _write(self, line: Line) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed: with 100 values, p99 is the 99th."""
    ordered = sorted(values)
    assert ordered and 0 < share <= 1
    return ordered[ceil(round(share * len(ordered), 6)) - 1]


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _read(path: Path) -> list[Line]:
    """A last line that was cut off is nobody's result: it is removed, so that the next one begins a line."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


def _circumstances() -> Line:
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip() or "unknown",
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
    }


def _described(header: Line) -> str:
    return (
        f"Begun {header['began']} at commit {header['commit']}; {header['cpus']} processors, "
        f"{header['memory_gib']} GiB, Python {header['python']}, librdkafka {header['librdkafka']}."
    )
