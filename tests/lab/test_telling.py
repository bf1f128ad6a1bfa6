"""An experiment as it is printed: no word is broken, on a narrow terminal or in a file."""

import io

import pytest
from rich.console import Console

from klamm.lab.catalogue import experiment
from klamm.lab.stage import Told
from klamm.lab.telling import Narrator
from tests.lab.figures import ACKS

ROUND_THE_CORNER = "the follower that stood still left the in-sync replicas, once it had lagged for the time allowed"


def told(width: int) -> str:
    narrator = Narrator(silent=False)
    narrator._console = Console(file=io.StringIO(), width=width, highlight=False)
    narrator.announce(experiment("acks"))
    narrator.hear(Told(12.5, ROUND_THE_CORNER))
    narrator.conclude(ACKS)
    return narrator._console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_are_broken_between_words(width: int) -> None:
    text = told(width)
    words = set(text.split())
    for claim in ACKS.claims():
        assert words.issuperset(claim.text.split())
    assert words.issuperset(ROUND_THE_CORNER.split()) and words.issuperset(experiment("acks").plan.split())
    lines = text.splitlines()
    before_pictures = lines[: next(at for at, line in enumerate(lines) if ROUND_THE_CORNER.split()[-1] in line)]
    claims = [line for line in lines if line.startswith(("  yes  ", "  NO   "))]
    assert len(claims) == len(ACKS.claims())
    assert all(len(line) <= width for line in (*before_pictures, *claims))
    assert all(line == line.rstrip() for line in lines)


def test_what_goes_on_in_the_next_line_stands_below_what_it_belongs_to() -> None:
    lines = told(60).splitlines()
    begun = next(at for at, line in enumerate(lines) if line.startswith(" 12.50 s  the follower"))
    assert lines[begun + 1].startswith(" " * 10) and lines[begun + 1][10] != " "
