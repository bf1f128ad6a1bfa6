"""How the demo looks: the placement as a table, how far it is on one line, and the reckoning with its chart.

Functions from values to something that can be printed, and `Voice`, which prints it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from klamm.cli.console import OwnConsole
from klamm.cli.demo_reckoning import Outcome, Store
from klamm.cli.placement_table import OUT_OF_SYNC, cells, headings, rows_of
from klamm.lab.beside import beside
from klamm.local.view import ClusterSeen

WIDE = 120
STORES_SHOWN = 10
BAR = 30
LINE_SECONDS = 5.0
"""Between two lines on how far it is, where there is no terminal."""
RACK_STYLES = ("cyan", "magenta", "green", "yellow")


class Voice:
    """Tells what is done while it is done: steps, what happens with its time, and one line that changes."""

    def __init__(self, *, to_stderr: bool = False, plain: bool = False) -> None:
        console = OwnConsole(stderr=to_stderr)
        if plain or not console.is_terminal or console.is_dumb_terminal:
            width = console.width if console.is_terminal else WIDE
            console = OwnConsole(stderr=to_stderr, width=width, force_terminal=False, no_color=True)
        self._console = console
        self._began = time.monotonic()
        self._live: Live | None = None
        self._last_line = 0.0
        self._steps = 0

    def step(self, title: str) -> None:
        self._steps += 1
        self._print()
        self._print(Text.assemble((f"{self._steps}  ", "bold cyan"), (title, "bold")))

    def say(self, text: str = "", style: str = "") -> None:
        if not text:
            self._print()
            return
        self._print(Padding(Text(text, style=style), (0, 0, 0, 3), expand=False))

    def to_copy(self, text: str) -> None:
        """However long it is: a line that is broken cannot be copied."""
        self._print(Text(f"   {text}"), soft_wrap=True)

    def show(self, what: RenderableType) -> None:
        self._print(Padding(what, (0, 0, 0, 3), expand=False))

    def happened(self, text: str) -> None:
        when = Text.assemble((f"   {self.seconds:6.1f} s  ", "dim"))
        for line in beside(when, text, self._console.width):
            self._print(line, soft_wrap=True)

    def progress(self, text: str) -> None:
        if self._live is not None:
            self._live.update(Spinner("dots", text=Text(f" {self.seconds:.0f} s   {text}", style="dim")))
        elif time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            self.happened(text)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """While something takes its time, on a terminal with a line that moves."""
        if not self._console.is_terminal or self._live is not None:
            yield
            return
        spinner = Spinner("dots", text=Text(f" {text}", style="dim"))
        try:
            with Live(spinner, console=self._console, refresh_per_second=8, transient=True) as self._live:
                yield
        finally:
            self._live = None

    def _print(self, *what: RenderableType, soft_wrap: bool = False) -> None:
        """Where there is no terminal, without the spaces that fill up what is laid out."""
        if self._console.is_terminal:
            self._console.print(*what, soft_wrap=soft_wrap)
            return
        with self._console.capture() as said:
            self._console.print(*what, soft_wrap=soft_wrap)
        self._console.file.write("".join(f"{line.rstrip()}\n" for line in said.get().splitlines()))
        self._console.file.flush()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began


def placement(seen: ClusterSeen) -> RenderableType:
    rows = rows_of(seen)
    racks = sorted({row.broker.rack or "" for row in rows})
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    for heading in headings(len(rows[0].roles)):
        grid.add_column(heading, no_wrap=True)
    for row in rows:
        style = RACK_STYLES[racks.index(row.broker.rack or "") % len(RACK_STYLES)]
        first, *others = cells(row)
        grid.add_row(Text(first, style="red" if row.broker.is_fenced else style), *others)
    if any(each.is_under_replicated for each in seen.partitions):
        return Group(grid, Text(f"{OUT_OF_SYNC} not in sync", style="dim"))
    return grid


def reckoned(outcome: Outcome) -> RenderableType:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    sent = f"{outcome.copies:,} of them twice, as tills do" if outcome.copies else ""
    grid.add_row("sent", f"{outcome.sent:,}", sent)
    grid.add_row("acknowledged", f"{outcome.acknowledged:,}", "by every replica in sync")
    if outcome.with_spark:
        kept = f"{outcome.found - outcome.quarantined:,} invoices, {outcome.quarantined:,} malformed ones in quarantine"
        grid.add_row("in the tables", f"{outcome.found:,}", kept)
    else:
        grid.add_row("read back", f"{outcome.found:,}", "by a client, from the beginning")
    for name, count in (("lost", outcome.lost), ("doubled", outcome.doubled)):
        grid.add_row(Text(name, style="bold"), Text(f"{count:,}", style="bold red" if count else "bold green"))
    return grid


def revenue(outcome: Outcome) -> RenderableType:
    """Who took most, and a bar for each."""
    shown, rest = outcome.stores[:STORES_SHOWN], outcome.stores[STORES_SHOWN:]
    most = max((store.cents for store in shown), default=0)
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 3, 0, 0))
    grid.add_column("store")
    grid.add_column("invoices", justify="right")
    grid.add_column("revenue", justify="right")
    grid.add_column("")
    for store in shown:
        grid.add_row(store.store_id, f"{store.invoices:,}", _money(store.cents), Text(bar(store.cents, most), "cyan"))
    if rest:
        grid.add_row(f"{len(rest)} more", f"{_invoices(rest):,}", _money(sum(store.cents for store in rest)), "")
    grid.add_row(
        "all", f"{_invoices(outcome.stores):,}", _money(sum(store.cents for store in outcome.stores)), "", style="bold"
    )
    if not outcome.late:
        return grid
    note = f"{outcome.late:,} more came hours late, when the books were closed: they are in the table `invoices` only"
    return Group(grid, Text(note, style="dim"))


def bar(value: int, most: int) -> str:
    """As long as its share of the largest, in eighths of a character."""
    eighths = 0 if most <= 0 else round(BAR * 8 * value / most)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")


def _invoices(stores: Sequence[Store]) -> int:
    return sum(store.invoices for store in stores)


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"
