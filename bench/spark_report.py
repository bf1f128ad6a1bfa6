"""The table of the last run: medians of both formats and of the floor, and the ratio taken within each round."""

import json
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

from rich.table import Table

from bench.report import BUSY
from bench.spark_queries import FLOOR

TARGET = 1.5
COLUMNS = ("values", "codec", "sink", "klamm, records/s", "connector, records/s", "ratio", "lowest to highest", "floor")

Case: TypeAlias = tuple[int, str, str]


def rows(lines: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    cases: dict[Case, dict[str, dict[int, int]]] = {}
    for line in lines:
        by_format = cases.setdefault((line["bytes"], line["codec"], line["sink"]), {})
        by_format.setdefault(line["format"], {})[line["round"]] = line["records_per_second"]
    return [_row(case, figures) for case, figures in cases.items() if {"klamm", "kafka"} <= figures.keys()]


def table(lines: list[dict[str, Any]]) -> Table:
    shown = Table(*COLUMNS, title="Records a second of a streaming query")
    for row in rows(lines):
        shown.add_row(*row)
    return shown


def markdown(header: dict[str, Any], lines: list[dict[str, Any]]) -> str:
    busiest = max((line["busy"] for line in lines), default=0.0)
    machine = ", ".join(f"{name} {value}" for name, value in header["machine"].items())
    text = [
        "# Format `klamm` beside Spark's own connector",
        "",
        f"Run {header['run']}, plan {header['plan']['name']}: {machine}.",
        "The floor decodes the same bytes without a network.",
        *([f"**Others used up to {busiest:.0%} of the cores: ratios mean little.**"] if busiest > BUSY else []),
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(row)} |" for row in rows(lines)),
        "",
        f"To reach: {TARGET} times the connector.",
    ]
    return "\n".join(text) + "\n"


def last_run(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header: dict[str, Any] = {}
    lines: list[dict[str, Any]] = []
    for text in path.read_text().splitlines():
        line = json.loads(text)
        if line["kind"] == "run":
            header, lines = line, []
        else:
            lines.append(line)
    return header, lines


def _row(case: Case, figures: dict[str, dict[int, int]]) -> tuple[str, ...]:
    ours, theirs = figures["klamm"], figures["kafka"]
    ratios = [ours[number] / theirs[number] for number in ours.keys() & theirs.keys()]
    floor = figures.get(FLOOR)
    size, codec, sink = case
    return (
        f"{size} B", codec, sink, f"{median(ours.values()):,.0f}", f"{median(theirs.values()):,.0f}",
        f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}",
        f"{median(floor.values()):,.0f}" if floor else "",
    )  # fmt: skip
