"""How far it is: on a terminal one line that is written over, and as long as that one; elsewhere all of it."""

import fcntl
import io
import os
import pty
import struct
import sys
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from klamm.cli import progress
from klamm.cli.progress import Progress

TEXT = "12,345 sent, 12,344 acknowledged, 1,000 a second"


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    """What is read from it, and what is written to."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield ours, stream
    os.close(ours)


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(49, TEXT), (48, f"{TEXT[:46]}…"), (20, "12,345 sent, 12,34…"), (0, TEXT)],
)
def test_a_line_does_not_fold(
    terminal: tuple[int, TextIO], columns: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning stayed where it was, again and again."""
    reads, writes = terminal
    fcntl.ioctl(reads, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    monkeypatch.setattr(sys, "stderr", writes)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    # Standard output may be wider, or narrower.
    monkeypatch.setenv("COLUMNS", "10")
    Progress().show(lambda: TEXT)
    assert os.read(reads, 1_000).decode() == f"\r\x1b[K{shown}"


def test_what_goes_into_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", said := io.StringIO())
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "10")
    Progress(lines=True).show(lambda: TEXT)
    assert said.getvalue() == f"{TEXT}\n"
