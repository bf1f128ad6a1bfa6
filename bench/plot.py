"""A run as a picture: ratios with their spread and targets, and processor time beside the floor."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from bench.figures import NEAR_THE_FLOOR, Against
from bench.report import Row, floors, rows
from bench.store import Run

REACHED, MISSED, NEUTRAL = "#1a7f37", "#c0392b", "#57606a"
SUBJECT, KAFKA, FLOOR = "#2f6f9f", "#c77d2e", "#20242a"
COST_TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]


def draw(run: Run, path: Path) -> None:
    found = rows(run)
    ratios = [
        row for row in found if row.ratio is not None and not row.figure.name.startswith(("cpu.", "latency.rate"))
    ]
    costs = [row for row in found if row.figure.name.startswith("cpu.") and row.subject is not None]
    height = max(4.5, 0.36 * max(len(ratios), len(costs) * 1.4) + 2.0)
    picture, (left, right) = pyplot.subplots(
        1, 2, figsize=(20 if run.is_cluster else 15, height), width_ratios=[1.15, 1]
    )
    subject, kafka = run.systems
    _draw_ratios(left, ratios, f"{subject} / {kafka}")
    _draw_costs(right, costs, run)
    facts = run.header["machine"]
    picture.suptitle(
        f"{subject.capitalize()} beside Apache Kafka {facts['kafka']}: {'three brokers each, ' * run.is_cluster}"
        f"{len(run.complete_rounds())} rounds, "
        f"{facts['cpus']} cores, {facts['memory_gib']} GiB, Python {facts['python']}, Java {facts['java']}",
        x=0.01, ha="left", fontsize=13,
    )  # fmt: skip
    picture.tight_layout(rect=(0, 0, 1, 0.98))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=110)
    pyplot.close(picture)


def _draw_ratios(axes: Axes, found: list[Row], title: str) -> None:
    for place, row in enumerate(found):
        assert row.ratio is not None
        color = {True: REACHED, False: MISSED, None: NEUTRAL}[row.reached]
        axes.plot([row.ratio.lowest, row.ratio.highest], [place, place], color=color, linewidth=5, alpha=0.3)
        axes.plot(row.ratio.middle, place, "o", color=color, markersize=7)
        target = row.target
        if target is not None and target.against is Against.KAFKA:
            axes.plot(target.limit, place, "|", color=FLOOR, markersize=15, markeredgewidth=2)
        axes.annotate(f"{row.ratio.middle:.2f}", (1.01, place), xycoords=("axes fraction", "data"), va="center")
    axes.axvline(1.0, color=NEUTRAL, linewidth=1, linestyle=":")
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    lowest = min((row.ratio.lowest for row in found if row.ratio), default=0.5)
    highest = max((row.ratio.highest for row in found if row.ratio), default=2.0)
    axes.set_xlim(min(0.45, lowest * 0.8), max(2.2, highest * 1.25))
    shown = [tick for tick in ticks if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
    axes.set_xticks([], minor=True)
    labels = [f"{row.figure.label}  {'▲' if row.figure.more_is_better else '▼'}" for row in found]
    axes.set_yticks(range(len(found)), labels)
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e3e6e8")
    axes.set_axisbelow(True)
    axes.set_title(f"{title} (▲ more is better, ▼ less is better)\n● median, bar: lowest to highest, | target",
                   loc="left", fontsize=11)  # fmt: skip


def _draw_costs(axes: Axes, found: list[Row], run: Run) -> None:
    subject, kafka = run.systems
    loops = floors(run)
    labels: set[str] = set()
    for place, row in enumerate(found):
        floor = loops.get(row.figure.floor or "")
        if floor:
            axes.plot(floor, place, "|", color=FLOOR, markersize=20, markeredgewidth=2.5, label=_once("floor", labels))
            target = [floor, NEAR_THE_FLOOR.limit * floor]
            axes.plot(target, [place, place], color=REACHED, linewidth=9, alpha=0.25, solid_capstyle="butt",
                      label=_once(f"up to {NEAR_THE_FLOOR.limit:g} × floor: the target", labels))  # fmt: skip
        for name, value, color, above in ((kafka, row.kafka, KAFKA, False), (subject, row.subject, SUBJECT, True)):
            if value:
                axes.plot(value, place, "o", color=color, markersize=9, label=_once(name, labels))
                axes.annotate(f"{value:.2g}", (value, place), (0, 8 if above else -15), textcoords="offset points",
                              ha="center", fontsize=9, color=color)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(COST_TICKS, [f"{tick:g}" for tick in COST_TICKS])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(found)), [row.figure.label.removeprefix("CPU ") for row in found])
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.grid(axis="x", color="#e3e6e8")
    axes.set_axisbelow(True)
    axes.set_title("▼ broker's processor seconds per GB stored or served", loc="left", fontsize=11)
    if found:
        axes.legend(loc="upper right", bbox_to_anchor=(1.02, -0.04), ncols=4, frameon=False, handletextpad=0.3)


def _once(label: str, seen: set[str]) -> str | None:
    """A label for the legend the first time only."""
    if label in seen:
        return None
    seen.add(label)
    return label
