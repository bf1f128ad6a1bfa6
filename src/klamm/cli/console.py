"""rich's console for text that others chose: nothing in it is markup, and control characters are ours alone."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from klamm.escaping import escaped


class OwnConsole(Console):
    def __init__(self, **options: Any) -> None:
        # `[bold]` may be the name of a group, and `:smile:` too.
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """The last door: colours and the cursor's movements are made behind it, or are segments of their own."""
        return super()._render_buffer(each if each.control else _escaped(each) for each in buffer)


def _escaped(segment: Segment) -> Segment:
    text = escaped(segment.text)
    return segment if text is segment.text else Segment(text, segment.style)
