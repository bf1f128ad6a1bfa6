"""The curves over the number of partitions, as a table, a page and a picture.

The newest measurement of each system, shape and count is shown. What is wanted: nothing grows faster than the number of
partitions, and a produce costs the same at every count. The verdicts compare the cost of one partition at the largest
count with that at the next smaller one; at small counts the fixed cost of a process hides everything.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from rich.table import Table

COLUMNS = {
    "create_seconds": "create s",
    "clean_ack_seconds": "clean restart s",
    "killed_ack_seconds": "restart after kill s",
    "stop_seconds": "clean stop s",
    "memory_mib": "memory MiB",
    "descriptors": "descriptors",
    "first_produce_ms": "first produce ms",
    "produce_ms": "produce ms",
    "produce_p99_ms": "produce p99 ms",
    "produce_cpu_us": "CPU µs a produce",
}
FLAT = ("produce_ms", "produce_cpu_us")
PANELS = [name for name in COLUMNS if name not in ("first_produce_ms", "produce_p99_ms")]
SHAPE_WORDS = {"wide": "topics of 100", "narrow": "topics of 1"}
COLORS = {"klamm": "#2f6f9f", "kafka": "#c77d2e"}
GROWTH_ALLOWED = 1.25
FLAT_ALLOWED = 1.25


@dataclass(slots=True)
class Curves:
    machine: dict[str, Any]
    curves: dict[tuple[str, str], dict[int, dict[str, float]]]


def read(path: Path) -> Curves:
    found = Curves({}, {})
    for text in path.read_text().splitlines():
        line = json.loads(text)
        found.machine = line["machine"]
        found.curves.setdefault((line["system"], line["shape"]), {})[line["partitions"]] = line["figures"]
    return found


def table(found: Curves) -> Table:
    shown = Table(title="one node with many partitions", title_justify="left")
    for heading in ("system", "shape", "partitions", *COLUMNS.values()):
        shown.add_column(heading, justify="left" if heading in ("system", "shape") else "right", min_width=6)
    for cells in _rows(found):
        shown.add_row(*cells)
    return shown


def markdown(found: Curves) -> str:
    facts = found.machine
    headings = ["system", "shape", "partitions", *COLUMNS.values()]
    lines = [
        "# One node with many partitions",
        "",
        f"{facts['cpus']} cores, {facts['memory_gib']} GiB; Python {facts['python']}, Java {facts['java']}, Kafka "
        f"{facts['kafka']}. Restarts run from the start of the process to the first acknowledged record; a produce is "
        "one record of 100 bytes, acks=1, one in flight, round robin over all partitions; the first produce of a "
        "partition stands apart, because there files appear.",
        "",
        "| " + " | ".join(headings) + " |",
        "|---|---|" + "--:|" * (len(headings) - 2),
    ]
    lines += ["| " + " | ".join(cells) + " |" for cells in _rows(found)]
    lines += ["", "## Does anything grow faster than the partitions?", ""]
    for (system, shape), curve in sorted(found.curves.items()):
        lines += [f"- {system}, {SHAPE_WORDS[shape]}: {verdict}" for verdict in verdicts(curve)]
    return "\n".join([*lines, ""])


def verdicts(curve: dict[int, dict[str, float]]) -> list[str]:
    """A sentence for each thing that could grow, the fixed cost of an empty process taken off."""
    counts = sorted(curve)
    if len(counts) < 2:
        return []
    before, last = counts[-2], counts[-1]
    fixed = {"clean_ack_seconds": "start_seconds", "killed_ack_seconds": "start_seconds", "memory_mib": "empty_mib"}
    sentences = []
    for name in ("create_seconds", "clean_ack_seconds", "killed_ack_seconds", "memory_mib", "descriptors"):
        each = []
        for count in (before, last):
            figures = curve[count]
            each.append((figures[name] - figures.get(fixed.get(name, ""), 0.0)) / count)
        factor = each[1] / each[0] if each[0] > 0 else 0.0
        word = "no faster" if factor <= GROWTH_ALLOWED else "**faster**"
        sentences.append(f"{COLUMNS[name]} grows {word} than the partitions ({each[1]:.3g} each at {last:,}, "
                         f"{each[0]:.3g} at {before:,})")  # fmt: skip
    for name in FLAT:
        factor = curve[last][name] / curve[counts[0]][name] if curve[counts[0]][name] else 0.0
        word = "the same" if factor <= FLAT_ALLOWED else "**not the same**"
        sentences.append(f"{COLUMNS[name]} is {word} at {last:,} as at {counts[0]:,} (factor {factor:.2f})")
    return sentences


def draw(found: Curves, path: Path) -> None:
    picture, grid = pyplot.subplots(2, 4, figsize=(17, 8))
    for axes, name in zip(grid.flat, PANELS, strict=True):
        _draw_panel(axes, found, name)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="upper right", ncols=len(labels), frameon=False, fontsize=11)
    facts = found.machine
    picture.suptitle(f"One node with many partitions ({facts['cpus']} cores, {facts['memory_gib']} GiB, Python "
                     f"{facts['python']})", x=0.01, ha="left", fontsize=13)  # fmt: skip
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=100)
    pyplot.close(picture)


def _draw_panel(axes: Axes, found: Curves, name: str) -> None:
    for (system, shape), curve in sorted(found.curves.items()):
        counts = sorted(curve)
        axes.plot(
            counts, [curve[count][name] for count in counts], marker="o" if shape == "wide" else "s",
            color=COLORS[system], linestyle="-" if shape == "wide" else "--", label=f"{system}, {SHAPE_WORDS[shape]}",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if name in FLAT:
        axes.set_ylim(bottom=0)
    else:
        # A decade at least, so that what hardly grows looks like it.
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        room = max(1.0, (10 * low / high) ** 0.5)
        axes.set_ylim(low / room, high * room)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(COLUMNS[name], loc="left", fontsize=11)
    axes.set_xlabel("partitions")
    axes.grid(color="#e3e6e8")


def _rows(found: Curves) -> list[list[str]]:
    rows = []
    for (system, shape), curve in sorted(found.curves.items()):
        for count, figures in sorted(curve.items()):
            rows.append([system, SHAPE_WORDS[shape], f"{count:,}", *(_number(figures[name]) for name in COLUMNS)])
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
