"""How commands speak: tables with aligned columns, JSON for programs, one line for what went wrong.

Results go to standard output, everything else to standard error, so that a script gets what it asked for.
"""

import json
import sys
from collections.abc import Sequence
from typing import TextIO

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
        print(text, file=sys.stderr, flush=True)


def say_result(text: str) -> None:
    """A line of what was asked for, at once: somebody may be waiting for it."""
    print(text, flush=True)


def say_silent(address: object) -> None:
    """Of one who is there and says nothing, while others are asked."""
    say(f"{address} does not answer yet; asking on")


def failed(command: str, problem: object, code: int = FAILED) -> int:
    say(f"klamm {command}: {problem}")
    return code


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2), flush=True)


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell, two spaces between them; numbers to the right, `-` for None."""
    texts = [list(headings), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
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


def _is_of_numbers(column: Sequence[object]) -> bool:
    """There is one, and nothing else but gaps."""
    there = [cell for cell in column if cell is not None]
    return bool(there) and all(isinstance(cell, int) for cell in there)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
