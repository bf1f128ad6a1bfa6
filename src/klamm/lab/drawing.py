"""What happened, drawn: a timeline of leaders and in-sync replicas, log ends as bars, tables.

A terminal that knows only ASCII gets the same pictures in its own signs.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from klamm.lab.stage import Told
from klamm.lab.watching import Look

LEADS, IN_SYNC, OUT_OF_SYNC, UNCOMMITTED = "█", "▒", "·", "░"
COLOURS = {LEADS: "green", IN_SYNC: "cyan", OUT_OF_SYNC: "red", UNCOMMITTED: "yellow"}
IN_ASCII = str.maketrans({LEADS: "#", IN_SYNC: "=", OUT_OF_SYNC: ".", UNCOMMITTED: "?"})
TIMELINE_CELLS, BAR_CELLS = 60, 40


class Bar(NamedTuple):
    label: str
    committed: int
    end: int
    """Of the log; what lies between the two is on this replica and not committed."""
    remark: str = ""


def show(console: Console, picture: Text) -> None:
    if console.options.ascii_only:
        picture = picture.copy()
        picture.plain = picture.plain.translate(IN_ASCII)
    console.print(picture, soft_wrap=True)


def titled(title: str, picture: Text) -> Text:
    return Text(f"{title}\n", style="bold").append_text(picture)


def timeline(looks: Sequence[Look], brokers: Sequence[int], marks: Sequence[Told]) -> Text:
    """A row a broker, time to the right; below, what was done when."""
    first, last = looks[0].seconds, max(looks[-1].seconds, looks[0].seconds + 0.001)
    step = (last - first) / TIMELINE_CELLS
    picture = Text()
    for broker in brokers:
        picture.append(f"broker {broker}  ")
        for cell in range(TIMELINE_CELLS):
            _append_sign(picture, _sign(_look_at(looks, first + (cell + 0.5) * step), broker))
        picture.append("\n")
    letters = [chr(ord("a") + number) for number in range(len(marks))]
    axis = [" "] * (TIMELINE_CELLS + 1)
    for letter, mark in zip(letters, marks, strict=True):
        at = max(0, min(TIMELINE_CELLS - 1, int((mark.seconds - first) / step)))
        while axis[at] != " ":
            at += 1
        axis[at] = letter
    picture.append(f"{'':10}{''.join(axis).rstrip()}\n")
    for letter, mark in zip(letters, marks, strict=True):
        picture.append(f"{'':10}{letter}  {mark.seconds:5.2f} s  {mark.text}\n")
    return _with_legend(picture, {LEADS: "leads", IN_SYNC: "in sync", OUT_OF_SYNC: "not in sync"}, 10)


def bars(rows: Sequence[Bar], most: int = 1, meanings: tuple[str, str] = ("committed", "not committed")) -> Text:
    """Logs as bars, a cell an offset if that fits. `most` is the longest log of all pictures that belong together."""
    longest = max([row.end for row in rows] + [most])
    scale = min(1.0, BAR_CELLS / longest)
    width, cells = max(len(row.label) for row in rows), round(longest * scale)
    picture = Text()
    for row in rows:
        solid, end = round(min(row.committed, row.end) * scale), round(row.end * scale)
        picture.append(f"{row.label:<{width}}  ")
        _append_sign(picture, LEADS * solid)
        _append_sign(picture, UNCOMMITTED * (end - solid))
        picture.append(f"{' ' * (cells - end)}  {row.end:,}  {row.remark}".rstrip() + "\n")
    if any(row.end > row.committed for row in rows):
        return _with_legend(picture, {LEADS: meanings[0], UNCOMMITTED: meanings[1]}, width + 2)
    picture.rstrip()
    return picture


def counts(numbers: Mapping[str, int]) -> Text:
    """How many of each."""
    return bars([Bar(label, number, number) for label, number in numbers.items()])


def grid(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Text:
    """Columns as wide as their widest cell; numbers to the right."""
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in (headings, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    are_numbers = [all(isinstance(row[index], int) for row in rows) for index in range(len(headings))]
    picture = Text()
    for number, row in enumerate(texts):
        cells = zip(row, widths, are_numbers, strict=True)
        line = "  ".join(f"{cell:>{width}}" if is_number else f"{cell:<{width}}" for cell, width, is_number in cells)
        picture.append(line.rstrip() + "\n", style="" if number else "bold")
    picture.rstrip()
    return picture


def _look_at(looks: Sequence[Look], seconds: float) -> Look:
    """The last one until then."""
    return next((look for look in reversed(looks) if look.seconds <= seconds), looks[0])


def _sign(look: Look, broker: int) -> str:
    if broker == look.leader:
        return LEADS
    return IN_SYNC if broker in look.in_sync else OUT_OF_SYNC


def _append_sign(picture: Text, signs: str) -> None:
    if signs:
        picture.append(signs, style=COLOURS[signs[0]])


def _with_legend(picture: Text, legend: Mapping[str, str], indent: int) -> Text:
    for number, (sign, meaning) in enumerate(legend.items()):
        picture.append("" if number else " " * indent)
        _append_sign(picture, sign)
        picture.append(f" {meaning}   ")
    picture.rstrip()
    return picture
