"""A cluster, watched until it is stopped: live on a terminal, elsewhere a line for what happens.

Nodes that died, be it all of them, end nothing: what starts them again is shown, and then how they return.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from rich.console import ConsoleDimensions
from rich.live import Live

from klamm.cli.cluster_view import LONGEST_SENTENCE, Happened, Scene, live, summary
from klamm.cli.console import OwnConsole
from klamm.cli.saying import say_result
from klamm.cli.status_document import document_of
from klamm.cli.tips import directory_option, mending
from klamm.escaping import one_line
from klamm.local.cluster import LocalCluster
from klamm.local.happenings import happenings
from klamm.local.look import Look
from klamm.local.looking import Looker
from klamm.local.rates import Recently

MOST_REMEMBERED = 100


How = Literal["live", "plain", "json"]


class Shown(Protocol):
    """Where looks are shown."""

    last: Look | None

    def note(self, look: Look) -> None: ...


def watch(cluster: LocalCluster, shown: Shown, *, all_ran: bool = False) -> None:
    """Until somebody has stopped all of it. If all ran a moment ago, those that do not any more are told of."""
    nodes = cluster.record().nodes
    with Looker(cluster) as looker:
        if all_ran:
            shown.last = Look(0.0, nodes, {node.node_id: "running" for node in nodes})
        while True:
            look = looker.look()
            shown.note(look)
            if look.was_stopped:
                return
            cluster.wait_change(looker.pause_seconds)


def was_stopped(cluster: LocalCluster) -> str:
    """Why nobody watches any more, in words."""
    return f"the cluster was stopped; `klamm up{directory_option(cluster.directory)}` starts it again, with its data"


@contextmanager
def shown_as(
    how: How, cluster: LocalCluster, ending: str, say_line: Callable[[str], None] = say_result
) -> Iterator[Shown]:
    """Live, on standard error, if that can be drawn on; else a line for what happens, said like this."""
    console = OwnConsole(stderr=True)
    if how == "json":
        yield _Documents(cluster)
    elif how == "plain" or not console.is_terminal or console.is_dumb_terminal:
        yield _Lines(cluster, say_line)
    else:
        with Live(console=console, auto_refresh=False) as drawn:
            yield _Screen(cluster, ending, drawn)


class _Lines:
    """What happens, a line each."""

    def __init__(self, cluster: LocalCluster, say_line: Callable[[str], None]) -> None:
        self.last: Look | None = None
        self._cluster, self._say_line = cluster, say_line

    def note(self, look: Look) -> None:
        # Who begins to watch is told what there is: nothing may happen for hours.
        told = [summary(look)] if self.last is None else happenings(self.last, look)
        if _is_nobody_there(look) and not look.was_stopped and not (self.last and _is_nobody_there(self.last)):
            told.append(f"no node runs any more; {mending(look.who_runs, self._cluster.directory)}")
        for what in told:
            self._say_line(f"{_time_of_day()} {one_line(what, LONGEST_SENTENCE)}")
        self.last = look


class _Documents:
    """What `klamm status --json` says, a line each time that it is another."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.last: Look | None = None
        self._cluster = cluster
        self._said = ""

    def note(self, look: Look) -> None:
        self.last = look
        line = json.dumps(document_of(self._cluster.directory, self._cluster.record(), look))
        if line != self._said:
            say_result(line)
            self._said = line


class _Screen:
    """All of it, drawn anew with every look."""

    def __init__(self, cluster: LocalCluster, ending: str, drawn: Live) -> None:
        self._cluster, self._ending, self._drawn = cluster, ending, drawn
        self._size: ConsoleDimensions | None = None
        self._recently = Recently()
        self._happened: list[Happened] = []
        self.last: Look | None = None

    def note(self, look: Look) -> None:
        self._recently.note(look)
        if self.last is not None:
            now = _time_of_day()
            self._happened += [Happened(now, what) for what in happenings(self.last, look)]
            del self._happened[:-MOST_REMEMBERED]
        self.last = look
        record = self._cluster.record()
        scene = Scene(
            self._cluster.directory,
            record.bootstrap_servers,
            look,
            self._recently.rates(),
            self._recently.reading(),
            tuple(self._happened),
            self._ending,
        )
        size = self._drawn.console.size
        if size != self._size:
            # The terminal has broken the lines anew: where the last picture began, nobody knows.
            if self._size is not None:
                self._drawn.console.clear()
            self._size = size
        columns, lines = size
        self._drawn.update(live(scene, lines, columns), refresh=True)


def _is_nobody_there(look: Look) -> bool:
    return not look.who_runs.is_anybody_there


def _time_of_day() -> str:
    return time.strftime("%H:%M:%S")
