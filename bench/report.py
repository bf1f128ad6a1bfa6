"""A run as a table: medians over the rounds, the ratio with its spread, the target and whether it was reached."""

from dataclasses import dataclass
from statistics import median

from rich.table import Table

from bench.cluster_figures import CLUSTER_FIGURES
from bench.figures import FIGURES, FLOORS, Against, Figure, Target
from bench.store import Run

BUSY = 0.1
REPLICATED = "Replication 3, `min.insync.replicas` 2, acks=all. MB/s count each record once, processor time and memory "
REPLICATED += "are those of the three brokers together."


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient taken round by round."""

    middle: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.middle:.2f}"

    @property
    def spread(self) -> str:
        return f"{self.lowest:.2f}..{self.highest:.2f}"


@dataclass(frozen=True, slots=True)
class Row:
    figure: Figure
    subject: float | None
    kafka: float | None
    ratio: Ratio | None
    floor_ratio: Ratio | None
    target: Target | None

    @property
    def reached(self) -> bool | None:
        target = self.target
        if target is None:
            return None
        if target.against is Against.NOTHING:
            value = self.subject
        else:
            against = self.ratio if target.against is Against.KAFKA else self.floor_ratio
            value = None if against is None else against.middle
        return None if value is None else target.is_reached(value)


def rows(run: Run) -> list[Row]:
    """A row for every figure that at least one system has."""
    found = [_row(run, figure) for figure in (CLUSTER_FIGURES if run.is_cluster else FIGURES)]
    return [row for row in found if row.subject is not None or row.kafka is not None]


def floors(run: Run) -> dict[str, float]:
    if run.is_cluster:
        return {}
    return {loop: middle for loop in FLOORS if (middle := _median(_series(run, "floor", loop))) is not None}


def table(run: Run) -> Table:
    subject, kafka = run.systems
    title = f"{subject} beside {kafka}{_brokers(run)}, {len(run.complete_rounds())} rounds"
    shown = Table(title=title, title_justify="left")
    for heading in ("", "unit", subject, kafka, "ratio", "spread", "× floor", "target", ""):
        shown.add_column(heading, justify="left" if heading in ("", "unit", "target") else "right", no_wrap=True)
    section = None
    for row in rows(run):
        if section not in (None, row.figure.section):
            shown.add_section()
        section = row.figure.section
        style = {True: "green", False: "red", None: ""}[row.reached]
        cells = _cells(row)
        shown.add_row(*cells[:-1], f"[{style}]{cells[-1]}[/{style}]" if style else cells[-1])
    for loop, seconds in floors(run).items():
        shown.add_row(FLOORS[loop], "s/GB", "", "", "", "", f"{seconds:.3g}", "", "")
    return shown


def markdown(run: Run) -> str:
    subject, kafka = run.systems
    facts = run.header["machine"]
    lines = [
        f"# {subject.capitalize()} beside Apache {kafka.capitalize()} {facts['kafka']}" + _brokers(run),
        "",
        f"{len(run.complete_rounds())} rounds on {facts['cpus']} cores and {facts['memory_gib']} GiB; Python "
        f"{facts['python']}, Java {facts['java']}, librdkafka {facts['librdkafka']}; measured {run.identity}, "
        f"plan `{run.header['plan']}`. Clients, broker and disk share the machine. Medians over the rounds; the ratio "
        f"is {subject} / {kafka} of the same round, with the lowest and the highest.",
        "",
        *([REPLICATED, ""] * run.is_cluster),
        *(["Kafka compared with itself: every ratio should be 1, and its spread is the noise.", ""] * run.is_noise),
        f"| | unit | {subject} | {kafka} | ratio | spread | × floor | target | reached |",
        "|---|---|--:|--:|--:|--:|--:|---|---|",
    ]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows(run)]
    lines += [f"| {FLOORS[loop]} | s/GB | | | | | {seconds:.3g} | | |" for loop, seconds in floors(run).items()]
    lines += ["", *notes(run), ""]
    return "\n".join(lines)


def notes(run: Run) -> list[str]:
    notes = []
    if run.busiest > BUSY:
        notes.append(f"Others used up to {run.busiest:.0%} of the cores just before: these figures are noise.\n")
    if short := sorted(run.short):
        notes.append(f"Shorter than five seconds in at least one round: {', '.join(short)}.")
    notes += [f"Failed: {failure.splitlines()[0]}" for failure in run.failures]
    return notes


def _brokers(run: Run) -> str:
    return ", three brokers each" if run.is_cluster else ""


def _row(run: Run, figure: Figure) -> Row:
    subject, kafka = (_series(run, system, figure.name) for system in run.systems)
    floor = _series(run, "floor", figure.floor) if figure.floor else {}
    target = None if run.is_noise else figure.target
    return Row(figure, _median(subject), _median(kafka), _ratio(subject, kafka), _ratio(subject, floor), target)


def _series(run: Run, system: str, name: str) -> dict[int, float]:
    found = {number: run.rounds[number][system].get(name) for number in run.complete_rounds()}
    return {number: value for number, value in found.items() if value is not None}


def _median(series: dict[int, float]) -> float | None:
    return median(series.values()) if series else None


def _ratio(above: dict[int, float], below: dict[int, float]) -> Ratio | None:
    quotients = [above[number] / below[number] for number in above if below.get(number)]
    return Ratio(median(quotients), min(quotients), max(quotients)) if quotients else None


def _cells(row: Row) -> list[str]:
    figure = row.figure
    return [
        figure.label,
        figure.unit,
        _number(row.subject),
        _number(row.kafka),
        str(row.ratio or "–"),
        row.ratio.spread if row.ratio else "",
        str(row.floor_ratio or ""),
        row.target.words(figure.unit) if row.target else "",
        {True: "yes", False: "no", None: ""}[row.reached],
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
