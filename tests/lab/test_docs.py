"""docs/lab.md and the command say the same: every experiment has its section, and what it quotes is claimed."""

import re
from pathlib import Path

import pytest

from klamm.cli.lab import _parser
from klamm.lab.catalogue import EXPERIMENTS
from tests.lab.figures import GOOD

DOCUMENT = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
SECTIONS = DOCUMENT.split("\n## ")[1:]


def test_one_section_an_experiment() -> None:
    commands = [re.findall(r"^```\nklamm lab (\S+)\n```$", section, re.MULTILINE) for section in SECTIONS]
    assert sorted(commands) == sorted([name] for name in EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_quoted_is_claimed(name: str) -> None:
    (section,) = [section for section in SECTIONS if f"\nklamm lab {name}\n" in section]
    quoted = re.findall(r"^  yes  (.*)$", section, re.MULTILINE)
    assert len(quoted) >= 3 and set(quoted) <= {claim.text for claim in GOOD[name].claims()}


def test_every_command_can_be_typed() -> None:
    """What the experiments do is tested beside this; here, that each line of the document is understood."""
    lines = re.findall(r"^klamm lab(.*?)(?:#.*)?$", DOCUMENT, re.MULTILINE)
    assert len(lines) == len(EXPERIMENTS) + 5
    for words in (line.split() for line in lines):
        if "--help" not in words:
            assert _parser(words).parse_args(words).experiment in (*EXPERIMENTS, None)
