"""Pictures, as a terminal shows them and as a file gets them."""

import io

import pytest
from rich.console import Console

from klamm.lab.catalogue import EXPERIMENTS
from klamm.lab.drawing import Bar, bars, counts, grid, show, timeline
from klamm.lab.stage import Told
from tests.lab.figures import GOOD, LOOKS


def test_a_timeline_shows_who_leads_and_who_is_out() -> None:
    lines = timeline(LOOKS, (0, 1, 2), [Told(1.0, "first"), Told(1.0, "second")]).plain.splitlines()
    assert lines[0] == "broker 0  " + "█" * 60
    assert lines[2] == "broker 2  " + "▒" * 40 + "·" * 20, "from 2 s on; the last look is the end of the picture"
    assert lines[3] == " " * 10 + " " * 20 + "ab", "two at once stand side by side"
    assert lines[4].split() == ["a", "1.00", "s", "first"]


def test_bars_are_cells_where_they_fit() -> None:
    lines = bars([Bar("broker 3", 5, 8, "leads"), Bar("broker 4", 5, 5)]).plain.splitlines()
    assert lines == [
        "broker 3  █████░░░  8  leads",
        "broker 4  █████     5",
        "          █ committed   ░ not committed",
    ]


def test_long_bars_are_scaled() -> None:
    assert counts({"a": 4000, "b": 1000, "none": 0}).plain.splitlines() == [
        f"a     {'█' * 40}  4,000",
        f"b     {'█' * 10}{' ' * 30}  1,000",
        f"none  {' ' * 40}  0",
    ]


def test_a_grid_has_numbers_to_the_right_and_no_spaces_behind() -> None:
    assert grid(("acks", "lost"), [("0", 1500), ("all", 0)]).plain == "acks   lost\n0     1,500\nall       0"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_can_be_drawn_in_ascii_too(name: str) -> None:
    for encoding in ("utf-8", "ascii"):
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        for picture in GOOD[name].pictures():
            show(Console(file=file), picture)
        file.flush()
        file.seek(0)
        drawn = file.read()
        assert drawn.strip() and all(line == line.rstrip() for line in drawn.splitlines())
        assert "\x1b" not in drawn, "no colours where there is no terminal"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_picture_fits_a_usual_terminal(name: str) -> None:
    assert max(len(line) for picture in GOOD[name].pictures() for line in picture.plain.splitlines()) <= 80


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_lessons_are_short(name: str) -> None:
    assert 2 <= GOOD[name].lesson().count(". ") + 1 <= 4
