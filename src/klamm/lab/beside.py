"""A text beside another, as a time and what happened then: broken between words, all of it to the right."""

from collections.abc import Iterator
from textwrap import wrap

from rich.text import Text

NARROWEST = 20
"""Columns for the text, however little room there is."""


def beside(what: Text, text: str, columns: int) -> Iterator[Text]:
    """The lines, in so many columns, and nothing behind the last word of any."""
    width = max(NARROWEST, columns - len(what))
    first, *others = wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
    yield what + Text(first)
    for other in others:
        yield Text(" " * len(what) + other)
