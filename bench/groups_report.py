"""What groups cost, as a page: curves over the number of members, steady load, a thousand groups.

Medians over the rounds; a ratio is taken within a round and shown with its lowest and highest. Clock times on a machine
that others use say little by themselves; processor time says more.
"""

from statistics import median

from rich.table import Table

from bench.groups import GroupRun
from bench.report import BUSY

PARTS = {"classic": "classic protocol", "newer": "ConsumerGroupHeartbeat"}
EVENTS = {"all_join": "all join", "one_joins": "one more joins", "one_leaves": "one leaves"}
LOADS = {"heartbeat": "heartbeats", "commit": "offset commits"}
HEADINGS = ("what", "unit", "klamm", "kafka", "ratio", "spread", "client")
MANY = {
    "groups.all_join.seconds": ("all groups join", "s"),
    "groups.all_join.cpu": ("… broker CPU", "s"),
    "groups.kib_each": ("memory each", "KiB"),
    "groups.resident_mib": ("memory of the broker in the end", "MiB"),
    "groups.all_commit.seconds": ("every group commits once", "s"),
    "groups.all_commit.cpu": ("… broker CPU", "s"),
    "groups.heartbeat.per_second": ("heartbeats", "1/s"),
    "groups.heartbeat.cpu_per_1000": ("… broker CPU for 1,000", "s"),
    "groups.commit.per_second": ("offset commits", "1/s"),
    "groups.commit.cpu_per_1000": ("… broker CPU for 1,000", "s"),
    "alone.p50_ms": ("a commit alone, p50", "ms"),
    "alone.p99_ms": ("a commit alone, p99", "ms"),
    "restart.seconds": ("kill -9 until every group is served", "s"),
    "restart.first_ack_seconds": ("… of it until a record is acknowledged", "s"),
    "restart.after_ack_seconds": ("… of it after that", "s"),
}


def sections(run: GroupRun) -> list[tuple[str, list[list[str]]]]:
    found = []
    for part, words in PARTS.items():
        counts = run.counts(part)
        rows = [row for event, what in EVENTS.items() for row in _curve(run, part, event, what, counts)]
        for count in counts:
            rows.append(_row(run, part, f"{count}.resident_mib", f"memory of the broker, {count} members", "MiB"))
        for load, what in LOADS.items():
            for count in counts:
                name = f"{count}.{load}"
                rows.append(_row(run, part, f"{name}.per_second", f"{what}, {count} members", "1/s"))
                rows.append(
                    _row(
                        run, part, f"{name}.cpu_per_1000", "… broker CPU for 1,000", "s", f"{name}.client_cpu_per_1000"
                    )
                )
        found.append((f"One group, {words}", rows))
    for part, words in PARTS.items():
        found.append(
            (f"A thousand groups of one member, {words}",
             [_row(run, f"many-{part}", name, *wording) for name, wording in MANY.items()])
        )  # fmt: skip
    filled = [(title, [row for row in rows if row[2] != "–" or row[3] != "–"]) for title, rows in found]
    return [(title, rows) for title, rows in filled if rows]


def markdown(run: GroupRun) -> str:
    facts = run.header["machine"]
    lines = [
        f"# Groups: Klamm beside Apache Kafka {facts['kafka']}",
        "",
        f"{run.rounds()} rounds on {facts['cpus']} cores and {facts['memory_gib']} GiB; Python {facts['python']}, Java "
        f"{facts['java']}; measured {run.header['run']}, plan `{run.header['plan']}`. One broker each, "
        "`group.initial.rebalance.delay.ms=0` and `group.consumer.assignment.interval.ms=0` for both. "
        "Medians over the rounds; the ratio is klamm / kafka of the same round, with the lowest and the highest. "
        "Absolute times mean nothing by themselves: the load generator, the broker and whoever else is on the machine "
        "share its cores. *client* is the load generator's processor time beside Klamm, in the unit of the row.",
        "",
    ]
    if max(run.busy, default=0.0) > BUSY:
        lines += [
            f"**The machine was not quiet**: others used {median(run.busy):.0%} of the cores before the turns (median; "
            f"at most {max(run.busy):.0%}). Processor time is to be believed before the clock.",
            "",
        ]
    for title, rows in sections(run):
        lines += [f"## {title}", "", "| " + " | ".join(HEADINGS) + " |", "|---|---|--:|--:|--:|--:|--:|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows] + [""]
    lines += [f"Failed: {failure}" for failure in run.failures]
    return "\n".join(lines).rstrip() + "\n"


def tables(run: GroupRun) -> list[Table]:
    shown = []
    for title, rows in sections(run):
        table = Table(title=title, title_justify="left")
        for heading in HEADINGS:
            table.add_column(heading, justify="left" if heading in ("what", "unit") else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        shown.append(table)
    return shown


def _curve(run: GroupRun, part: str, event: str, what: str, counts: list[int]) -> list[list[str]]:
    rows = [_row(run, part, f"{count}.{event}.seconds", f"{what}, {count} members", "s") for count in counts]
    for count in counts:
        name = f"{count}.{event}"
        rows.append(_row(run, part, f"{name}.cpu", f"… broker CPU, {count} members", "s", f"{name}.client_cpu"))
    return rows


def _row(run: GroupRun, part: str, name: str, what: str, unit: str, client: str = "") -> list[str]:
    klamm, kafka = run.series(part, "klamm", name), run.series(part, "kafka", name)
    ratios = [klamm[number] / kafka[number] for number in klamm if kafka.get(number)]
    ratio = f"{median(ratios):.2f}" if ratios else "–"
    spread = f"{min(ratios):.2f}..{max(ratios):.2f}" if ratios else ""
    beside = _number(list(run.series(part, "klamm", client).values())) if client else ""
    return [what, unit, _number(list(klamm.values())), _number(list(kafka.values())), ratio, spread, beside]


def _number(values: list[float]) -> str:
    if not values:
        return "–"
    value = median(values)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
