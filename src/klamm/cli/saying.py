"""How commands speak: tables with aligned columns, JSON for programs, one line for what went wrong.

Results go to standard output, everything else to standard error, so that a script gets what it asked for.

All of it goes through here, and control characters stay behind: names and messages of others are in most of what is
said. What stands in a line of its own making is cut and kept in that line as well (`one_line`, cells of tables).
"""

import json
import sys
from collections.abc import Collection, Sequence
from typing import TextIO

from klamm.escaping import LONGEST, escaped, one_line

MOST_LINES, LONGEST_LINE = 100, 1_000
"""Of what went wrong."""
LONGEST_LIST = 100_000
FAILED, MISUSED = 1, 2
"""Exit codes: it could not be done; it was asked for in a way that makes no sense."""
INTERRUPTED, NOBODY_READS = 130, 141
"""And as shells know them: Ctrl-C; whoever read our output has gone."""


def is_terminal(stream: TextIO | None) -> bool:
    """Python has no standard output where the shell has closed it."""
    return stream is not None and stream.isatty()


def say(text: str) -> None:
    """To the person, not to the script: also where there is nobody, print would take the script's."""
    if sys.stderr is not None:
        print(_harmless(text), file=sys.stderr, flush=True)


def say_result(text: str, end: str = "\n") -> None:
    """What was asked for, at once: somebody may be waiting for it."""
    print(_harmless(text), end=end, flush=True)


def _harmless(text: str) -> str:
    """A tab, too: nothing of ours has one."""
    return escaped(text).replace("\t", "\\t")


def say_silent(address: object) -> None:
    """Of one who is there and says nothing, while others are asked."""
    say(f"klamm: {address} does not answer yet; asking on")


def failed(command: str, problem: object, code: int = FAILED) -> int:
    """What a broker said may be part of it, and may have lines: none of them looks like one of ours."""
    lines = f"klamm {command}: {problem}".split("\n", MOST_LINES)[:MOST_LINES]
    say("\n  ".join(one_line(line, LONGEST_LINE) for line in lines))
    return code


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2), flush=True)


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], whole: Collection[str] = ()) -> str:
    """Columns as wide as their widest cell, two spaces between them; numbers to the right, `-` for None. Cells are
    names, mostly of others, and cut where they are too long; in the `whole` columns are lists of ours."""
    longest = [LONGEST_LIST if heading in whole else LONGEST for heading in headings]
    texts = [list(headings), *([_cell(*each) for each in zip(row, longest, strict=True)] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    to_the_right = [_is_of_numbers([row[index] for row in rows]) for index in range(len(headings))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, to_the_right, strict=True)
        ).rstrip()
        for row in texts
    ]
    return "\n".join(lines)


def _cell(value: object, most: int) -> str:
    return "-" if value is None else one_line(str(value), most)


def _is_of_numbers(column: Sequence[object]) -> bool:
    """There is one, and nothing else but gaps."""
    there = [cell for cell in column if cell is not None]
    return bool(there) and all(isinstance(cell, int) for cell in there)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
