"""The pictures of docs/concepts.md and README.md: there, shown, well-formed, and what the rows of the design say."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from klamm.controller.placement import Candidate, ring
from tests.docs.blocks import ROOT, pages

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
LARGEST_BYTES = 40_000
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_shown_small_and_well_formed(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert len(text) < LARGEST_BYTES
    assert "/tmp/" not in text and "@font-face" not in text, "nothing of the machine, nothing to fetch"
    assert any(f"pictures/{picture.name}" in page.read_text(encoding="utf-8") for page in pages()), "no page shows it"


def words_of(name: str) -> list[str]:
    drawing = ElementTree.fromstring((ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8"))
    return [element.text or "" for element in drawing.iter(f"{SVG}text")]


def test_the_placement_that_was_drawn_is_the_one_of_the_design() -> None:
    """S8: replica j of partition p stands on the broker at position (p + j) modulo n of the ordered list."""
    brokers = [Candidate(number, "R1" if number < 3 else "R2") for number in range(6)]
    order = [f"{each.rack}-B{each.broker_id}" for each in ring(brokers)]
    drawn = [word for word in words_of("placement.svg") if re.fullmatch(r"R\d-B\d|L|F1|F2", word)]
    roles = ("L", "F1", "F2")
    wanted = []
    for place, broker in enumerate(order):
        held = [(place - partition) % len(order) for partition in range(10)]
        wanted += [broker, *(roles[role] for role in held if role < len(roles))]
    assert drawn == wanted


def test_the_ordered_list_that_was_drawn_alternates_the_racks() -> None:
    """S7."""
    listed = [word for word in words_of("brokers.svg") if re.fullmatch(r"R\d-B\d", word)]
    assert listed == ["R1-B0", "R2-B3", "R1-B1", "R2-B4", "R1-B2", "R2-B5"]


@pytest.mark.long
def test_the_pictures_can_be_drawn_again(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "tools.docs.pictures", "--into", str(tmp_path)], cwd=ROOT, check=True, timeout=300
    )
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name for path in PICTURES} - {"terminal.svg"}
