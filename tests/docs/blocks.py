r"""A page of the documentation as a list of code blocks, each with what an invisible comment before it says.

A comment of the form `<!-- key: value -->` right before a block speaks of that block; several may stand there. A block
that is a file says so in its first line (`# orders.py`) or by a marker. Of JSON, TOML, YAML and a diff of Python the
form is looked at. A block of text is an example of what the block before it says: the same words, other numbers.

    skip: reason       not run; the reason is shown, and a test counts how many there are
    needs: spark       run only where there is spark, java, kafka (the jars), root or time; several with commas
    expect: text       this text is in what the block says
    exit: 1            one of its commands ends with this code; otherwise all of them end with 0
    limit: 120         seconds that the block may take
    stays: text        the command stays in the foreground; it is ready when it has said this, Ctrl-C ends it at the end
    file: name         the block is this file, and a later block uses it
    after: name        Python that goes on where an earlier file of the page ends
    vary: pattern      where output is shown, what matches this is not compared, such as \d+
    settles: 10        seconds within which the output of a command that only looks is as shown; it is asked again
    output: above      the block is what the commands before it have said
    setup: name        tests/docs/setups/name.py is run first
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
KEYS = ("skip", "needs", "expect", "exit", "limit", "stays", "file", "after", "vary", "settles", "output", "setup")
NEEDS = ("spark", "java", "kafka", "root", "time")
SHELL = ("", "console", "sh", "bash", "shell", "shell-session")
PYTHON = ("python", "py", "python3")
LIMIT_SECONDS = 180.0

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<label>[\w+.-]*)[^`]*$")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_MARKER = re.compile(r"^\s*([a-z]+):\s*(.*?)\s*$")
_FILE_NAME = re.compile(r"^# ?([\w.-]+\.[a-z]+)$")


class BadMarker(Exception):  # noqa: N818
    """A comment that looks like a marker and is none."""


@dataclass(slots=True)
class Block:
    page: str
    line: int
    label: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> set[str]:
        return {need.strip() for need in self.marks.get("needs", "").split(",") if need.strip()}

    @property
    def limit_seconds(self) -> float:
        return float(self.marks.get("limit", LIMIT_SECONDS))

    @property
    def file(self) -> str | None:
        """The name under which the block is kept, if it is a file."""
        if "file" in self.marks:
            return self.marks["file"]
        first = _FILE_NAME.match(self.text.partition("\n")[0])
        return first[1] if first and not self.is_shell else None

    @property
    def is_shell(self) -> bool:
        return self.label in SHELL

    @property
    def has_tests(self) -> bool:
        return self.label in PYTHON and re.search(r"^(async )?def test_", self.text, re.MULTILINE) is not None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README first, then the rest by name. Decisions tell of their day and are left as they were."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    return blocks_in(page.read_text(encoding="utf-8"), page.name)


def blocks_in(text: str, page: str) -> list[Block]:
    lines = text.splitlines()
    found: list[Block] = []
    before: list[str] = []
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            before.append(lines[number])
            number += 1
            continue
        end = _end_of(lines, number, opening["fence"], page)
        body = [line.removeprefix(opening["indent"]) for line in lines[number + 1 : end]]
        found.append(Block(page, number + 1, opening["label"], "\n".join(body), marks_of("\n".join(before), page)))
        before = []
        number = end + 1
    return found


def _end_of(lines: list[str], opening: int, fence: str, page: str) -> int:
    for number in range(opening + 1, len(lines)):
        stripped = lines[number].strip()
        if stripped.startswith(fence) and set(stripped) == {fence[0]}:
            return number
    raise BadMarker(f"{page}:{opening + 1}: this block does not end")


def marks_of(before: str, page: str) -> dict[str, str]:
    """What the comments say that stand at the end of this text, with nothing but blank lines behind them."""
    marks: dict[str, str] = {}
    while before.rstrip().endswith("-->"):
        comment = list(_COMMENT.finditer(before))[-1]
        for line in comment[1].splitlines():
            said = _MARKER.match(line)
            if said is None:
                continue
            if said[1] not in KEYS:
                raise BadMarker(f"{page}: a marker {said[1]!r}; there are {', '.join(KEYS)}")
            marks.setdefault(said[1], said[2])
        before = before[: comment.start()]
    strange = {need.strip() for need in marks.get("needs", "").split(",")} - {"", *NEEDS}
    if strange:
        raise BadMarker(f"{page}: needs {', '.join(sorted(strange))}; there are {', '.join(NEEDS)}")
    return marks
