"""The curves over the number of members as a picture: what a rebalance, a heartbeat and a commit cost the broker."""

from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullLocator

from bench.groups import GroupRun
from bench.groups_report import PARTS
from bench.partitions_report import COLORS

PANELS = {
    "all_join.cpu": "all join: broker CPU, s",
    "one_joins.cpu": "one more joins: broker CPU, s",
    "one_leaves.cpu": "one leaves: broker CPU, s",
    "resident_mib": "memory of the broker, MiB",
    "all_join.seconds": "all join: s",
    "one_joins.seconds": "one more joins: s",
    "heartbeat.cpu_per_1000": "1,000 heartbeats: broker CPU, s",
    "commit.cpu_per_1000": "1,000 commits: broker CPU, s",
}


def draw(run: GroupRun, path: Path) -> None:
    picture, grid = pyplot.subplots(2, 4, figsize=(17, 8))
    for axes, (name, title) in zip(grid.flat, PANELS.items(), strict=True):
        _draw_panel(axes, run, name)
        axes.set_title(title, loc="left", fontsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="upper right", ncols=len(labels), frameon=False, fontsize=11)
    facts = run.header["machine"]
    title = f"One group of many members, Kafka {facts['kafka']}"
    picture.suptitle(title, x=0.01, ha="left", fontsize=13)
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    picture.savefig(path, dpi=100)
    pyplot.close(picture)


def _draw_panel(axes: Axes, run: GroupRun, name: str) -> None:
    counts: set[int] = set()
    for part, words in PARTS.items():
        for system, color in COLORS.items():
            curve = {count: median(found) for count in run.counts(part)
                     if (found := list(run.series(part, system, f"{count}.{name}").values()))}  # fmt: skip
            counts |= curve.keys()
            axes.plot(
                list(curve), list(curve.values()), color=color, label=f"{system}, {words}",
                marker="o" if part == "classic" else "s", linestyle="-" if part == "classic" else "--",
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(sorted(counts))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("members")
    axes.grid(color="#e3e6e8")
