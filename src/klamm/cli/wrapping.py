"""Help as wide as the terminal: sentences are broken between words, columns hang, and command lines stay whole, so that
they can be copied."""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence

from klamm.cli.saying import is_terminal

GAP = re.compile(r"(?<=\S)\s{2,}")
"""Between two columns."""
LITERAL = ("{", "klamm ", "echo ")
"""What an indented line begins with that is to be typed, or read, as it is."""
UNDER = 4
"""A comment that has no room beside its command stands below it, so far in."""


class AsWideAsTheTerminal(argparse.RawDescriptionHelpFormatter):
    """Where help goes into a file, or to another program, no line is broken."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = super()._fill_text(text, width, indent)
        return wrapped(filled, self._width) if is_terminal(sys.stdout) else filled


def wrapped(text: str, width: int) -> str:
    lines = [line for block in _blocks(text.split("\n")) for line in _block_wrapped(block, width)]
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Sentences that go on from line to line are one, and so is every other line."""
    sentences: list[str] = []
    for line in lines:
        if line and not line[0].isspace() and not GAP.search(line):
            sentences.append(line)
            continue
        if sentences:
            yield sentences
        sentences = []
        yield [line]
    if sentences:
        yield sentences


def _block_wrapped(block: Sequence[str], width: int) -> list[str]:
    if all(len(line) <= width for line in block):
        return list(block)
    line = " ".join(block)
    indent = len(line) - len(line.lstrip())
    columns = [gap.end() for gap in GAP.finditer(line)]
    if not columns:
        return [line] if indent and line.lstrip().startswith(LITERAL) else _filled(line.strip(), width, " " * indent)
    if len(columns) > 1:
        return _items_filled(GAP.split(line.strip()), width, " " * indent)
    (at,) = columns
    if at <= width // 2:
        return _filled(line[at:], width, line[:at], " " * at)
    return [line[:at].rstrip(), *_filled(line[at:], width, " " * (indent + UNDER))]


def _filled(text: str, width: int, first: str, others: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _items_filled(items: Sequence[str], width: int, indent: str) -> list[str]:
    """None of them is broken."""
    lines = [indent + items[0]]
    for item in items[1:]:
        if len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f"  {item}"
        else:
            lines.append(indent + item)
    return lines
