"""What the cores announce: facts, told once, in the past tense.

A core neither logs nor counts. It tells a fact to whoever listens; `runtime/observe.py` makes log lines and metrics
of them, the simulator makes its story of them, tests assert on them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Fact:
    """The root of all facts. `level` is how loudly the log says it; the text is the dataclass's `str`."""

    level = "info"


Tell: TypeAlias = Callable[[Fact], None]


def unheard(fact: Fact) -> None:
    """The listener of those who have none."""
