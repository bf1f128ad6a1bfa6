"""Facts become log lines: one line a fact, on standard error, with the time and how serious it is; and are counted.

What a stranger sent (a topic's name, a client id) may stand in a fact. Control characters are shown as escapes, so
nobody can forge a line.
"""

import contextlib
import sys
import time

from klamm.escaping import one_line
from klamm.facts import Fact, Tell

SHOWN = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
LONGEST_LINE = 2_000
"""A group's id alone may have 32,000 letters."""
BURST = 20
"""So many warnings of one kind a second are shown; a flood of strange requests must not become a flood of lines."""


def log_lines(node_id: int) -> Tell:
    shown_at: dict[type, tuple[int, int]] = {}

    def tell(fact: Fact) -> None:
        if fact.level == "debug" or (fact.level == "warning" and _too_many(shown_at, type(fact))):
            return
        # A log that cannot be written must not stop what it tells of.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{log_line(node_id, fact)}\n")
            sys.stderr.flush()

    return tell


def log_line(node_id: int, fact: Fact) -> str:
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    stamp = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}.{milliseconds:03d}"
    return f"{stamp} {SHOWN[fact.level]:<5} [broker {node_id}] {printable(str(fact))}"


class FactCounts:
    """How often each kind of fact was told; passes them on."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self.by_kind: dict[type[Fact], int] = {}

    def tell(self, fact: Fact) -> None:
        kind = type(fact)
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        self._tell(fact)


def printable(text: str) -> str:
    """The lines after the first are indented: whoever gets a line break into a fact cannot begin a line of the log."""
    lines = (one_line(line, LONGEST_LINE) if len(line) > LONGEST_LINE else line for line in text.split("\n"))
    return "\n    ".join("".join(each if each.isprintable() else repr(each)[1:-1] for each in line) for line in lines)


def _too_many(shown_at: dict[type, tuple[int, int]], kind: type) -> bool:
    second = int(time.monotonic())
    since, count = shown_at.get(kind, (second, 0))
    if since != second:
        since, count = second, 0
    shown_at[kind] = (since, count + 1)
    return count >= BURST
