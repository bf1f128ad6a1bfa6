"""What is made from the code is what the code says, links lead somewhere, and pictures are what a script makes."""

import re
from pathlib import Path

import pytest
from tools.docs.__main__ import made, stale
from tools.docs.apis import ABSENT, SERVED
from tools.docs.settings import settings_page

from klamm.config import broker_settings, topic_settings
from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY
from tests.docs.blocks import ROOT, pages

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


def test_made_pages_are_what_the_code_says() -> None:
    assert stale() == [], "python -m tools.docs writes them"


def test_every_page_that_is_made_is_there() -> None:
    assert {path.name for path in made()} == {"README.md", "settings.md"}


def test_every_api_has_a_row() -> None:
    """One that is new goes to `other` until somebody says what it is for."""
    assert {key for keys in SERVED.values() for key in keys} >= set(TABLE)
    assert {key for keys in [*SERVED.values(), *ABSENT.values()] for key in keys} == set(API_BY_KEY)


def test_every_setting_is_in_the_reference() -> None:
    page = settings_page()
    missing = [name for name in [*broker_settings(), *topic_settings()] if f"`{name}`" not in page]
    assert missing == [], "a table that tools/docs/settings.py does not know"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for found in LINK.finditer(page.read_text(encoding="utf-8")):
        link = found[1] or found[2]
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{page.name}: {link} leads out of the repository"
        if anchor:
            assert anchor in anchors_of(target), f"{page.name}: {link}: there is no such heading"


def anchors_of(page: Path) -> set[str]:
    """Headings as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
