"""A run as a person sees it: tables for a terminal, a line where there is none, and a summary at the end.

Everything here is a function from how the run stands to something that can be printed.
"""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from klamm.pipeline.progress import Offsets, QueryStanding, Standing

LONG_SECONDS = 5.0
"""A batch that takes so long is told of before it is done."""
TOLD_SECONDS = 1.0
"""A start of Spark that takes so long is told of in the summary."""
WORST = 3
"""So many partitions are named; of the others it is said that they are less."""


def live(standing: Standing, once: bool) -> RenderableType:
    head = Text(f"pipeline {standing.pipeline}", style="bold")
    records = f"   {standing.records:,} records" if standing.records or standing.is_known else ""
    head.append(f"   {duration(standing.seconds)}{records}", style="default")
    return Group(head, _queries(standing, once), _outputs(standing))


def _queries(standing: Standing, once: bool) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    grid.add_column("query")
    for heading in ("batch", "took", "records/s", "lag"):
        grid.add_column(heading, justify="right")
    grid.add_column("done" if once else "partitions behind")
    grid.add_column("late", justify="right")
    for query in standing.queries.values():
        has_begun = query.batches > 0
        grid.add_row(
            query.name,
            *_batch(query),
            f"{query.records_per_second:,.0f}" if has_begun else "-",
            f"{sum(query.lag.values()):,}" if query.ends else "-",
            _bar(query) if once else worst(query.lag),
            f"{query.late:,}" if query.late else "",
        )
    return grid


def _batch(query: QueryStanding) -> tuple[str, str]:
    """Which one, and how long it took or takes. One that goes by quickly is told of when it is done."""
    now = query.under_way
    if now is not None and (not query.batches or now.seconds >= LONG_SECONDS):
        return str(now.batch), f"{whole(now.seconds)} so far"
    if not query.batches:
        return "-", "-" if query.ends else "starts"
    return str(query.last_batch), f"{query.batch_seconds:.1f} s"


def _bar(query: QueryStanding) -> RenderableType:
    line = Grid.grid(padding=(0, 1, 0, 0))
    line.add_row(ProgressBar(total=1.0, completed=query.share, width=28), f"{query.share:4.0%}")
    return line


def _outputs(standing: Standing) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    grid.add_column("output")
    grid.add_column("rows added", justify="right")
    grid.add_column("replaced", justify="right")
    grid.add_column("left out", justify="right")
    for label in standing.outputs:
        done = standing.done
        others = (f"{count:,}" if count else "" for count in (done.replaced[label], done.left_out[label]))
        grid.add_row(label, f"{done.added[label]:,}" if done.added[label] or standing.is_known else "-", *others)
    if standing.quarantines:
        quarantined = f"{standing.quarantined:,}" if standing.quarantined or standing.is_known else "-"
        grid.add_row("quarantine", quarantined, style="red" if standing.quarantined else "")
    return grid


def worst(lag: Offsets) -> str:
    behind = sorted(
        ((count, partition) for partition, count in lag.items() if count), key=lambda each: (-each[0], each[1])
    )
    if not behind:
        return ""
    named = ", ".join(f"{topic}-{partition} {count:,}" for count, (topic, partition) in behind[:WORST])
    rest = len(behind) - WORST
    return f"{named} and {rest} more" if rest > 0 else named


def line(standing: Standing, once: bool) -> str:
    """One line for a log. Queries of one topic go at their own pace, so each speaks for itself."""
    queries = "; ".join(_in_words(query, standing.pipeline, once) for query in standing.queries.values())
    late = f", {standing.late:,} late" if standing.late else ""
    has_count = standing.quarantined > 0 or standing.is_known
    quarantined = f"; {standing.quarantined:,} quarantined" if has_count else ""
    return f"{standing.pipeline}, {duration(standing.seconds)}: {queries}{quarantined}{late}"


def _in_words(query: QueryStanding, pipeline: str, once: bool) -> str:
    now = query.under_way
    name = f"query {query.name}" if query.name == pipeline else query.name
    if not query.batches and not query.ends:
        return f"{name} starts" if now is None else f"{name} in batch {now.batch} for {whole(now.seconds)}"
    stands = f"{query.share:.0%}" if once else f"lag {sum(query.lag.values()):,}"
    is_long = now is not None and now.seconds >= LONG_SECONDS
    long = f", in batch {now.batch} for {whole(now.seconds)}" if now is not None and is_long else ""
    rate = f" at {query.records_per_second:,.0f} records/s" if query.batches and not query.is_over else ""
    return f"{name} {stands}{rate}{long}"


def summary(standing: Standing, ended: str) -> RenderableType:
    seconds = standing.start_seconds
    start = f" (and {duration(seconds)} to start Spark)" if seconds >= TOLD_SECONDS else ""
    head = Text(
        f"pipeline {standing.pipeline} {ended}: {standing.records:,} records in {duration(standing.seconds)}"
        f"{start}, {standing.records_per_second:,.0f} records/s"
    )
    grid = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    grid.add_column("output")
    counters = {"rows added": standing.done.added, "replaced": standing.done.replaced}
    has_doubles = standing.done.left_out.total() > 0
    if has_doubles:
        counters["left out"] = standing.done.left_out
    for heading in counters:
        grid.add_column(heading, justify="right")
    for label in (*standing.outputs, *standing.quarantines):
        grid.add_row(label, *(f"{counter[label]:,}" for counter in counters.values()))
    parts: list[RenderableType] = [head, Text(), grid]
    if has_doubles:
        parts += [Text(), Text("left out: another row has their key, and stays")]
    if standing.done.quarantined:
        reasons = Grid(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        reasons.add_column("why in quarantine")
        reasons.add_column("records", justify="right")
        for reason, count in sorted(standing.done.quarantined.items(), key=lambda each: (-each[1], each[0])):
            reasons.add_row(Text(reason), f"{count:,}")
        parts += [Text(), reasons]
    late = [f"{query.name} {query.late:,}" for query in standing.queries.values() if query.late]
    if late:
        parts += [Text(), Text(f"too late for their window, and in none: {', '.join(late)}")]
    return Group(*parts)


def whole(seconds: float) -> str:
    """The seconds that are over. Rounded, a batch could look older than the run that it is in."""
    return f"{int(seconds)} s"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
