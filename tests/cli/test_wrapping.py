"""Help on a narrow terminal: nothing is broken in the middle of a word, and no command in the middle at all."""

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest

from klamm.cli import main, saying, wrapping
from klamm.cli.completion_tree import tree
from klamm.cli.wrapping import wrapped

COLUMNS = 80
COMMAND = re.compile(r"^ +(klamm|echo|source) ", re.MULTILINE)

TEXT = """\
Sentences that go on from line to line
are filled anew.

examples:
  klamm x --one          what it does, in a few words
  klamm x --one --two and a third word of it     what that does
  klamm a-command-that-is-much-longer-than-the-line-is --wide
klamm at the beginning of a sentence is no command
patterns: %a first  %b second  %c third
          %d fourth  %e fifth  %f sixth
"""


def test_sentences_columns_and_commands() -> None:
    told = wrapped(TEXT, 34).split("\n")
    assert told[:2] == ["Sentences that go on from line to", "line are filled anew."]
    assert told[4:6] == ["  klamm x --one", "      what it does, in a few words"]
    assert told[6:8] == ["  klamm x --one --two and a third word of it", "      what that does"]
    assert told[8] == "  klamm a-command-that-is-much-longer-than-the-line-is --wide"
    assert told[9:11] == ["klamm at the beginning of a", "sentence is no command"]
    assert told[11:] == [
        "patterns: %a first  %b second",
        "%c third",
        "          %d fourth  %e fifth",
        "          %f sixth",
        "",
    ]


def test_a_second_column_hangs() -> None:
    assert wrapped("  name   what it is good for", 20).split("\n") == ["  name   what it is", "         good for"]


def test_what_has_room_stays_as_it_is() -> None:
    assert wrapped(TEXT, 200) == TEXT


def help_of(*words: str, on_a_terminal: bool) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "LINES"} | {"COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-m", "klamm", *words, "--help"]
    if not on_a_terminal:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    ours, theirs = pty.openpty()
    running = subprocess.Popen(command, env=environment, stdout=theirs)
    os.close(theirs)
    told = b""
    try:
        while more := os.read(ours, 65_536):
            told += more
    except OSError:
        pass  # It has ended.
    os.close(ours)
    assert running.wait(60) == 0
    return told.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [(), ("produce",), ("consume",), ("group", "describe"), ("topic",)], ids=" ".join)
def test_the_help_of_a_command_on_a_terminal(words: tuple[str, ...]) -> None:
    """Lines had up to 119 columns."""
    shown, whole = help_of(*words, on_a_terminal=True), help_of(*words, on_a_terminal=False)
    wide = [line for line in shown.split("\n") if len(line) > COLUMNS]
    assert all(COMMAND.match(line) or line.startswith("  {") for line in wide), wide
    assert shown.split() == whole.split(), "the same words in the same order"
    assert any(len(line) > COLUMNS for line in whole.split("\n"))


PATHS = [command.path for command in tree().walk() if not command.is_choice]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_help_there_is_fits_a_terminal(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of an experiment had 114 columns, whatever the terminal had."""
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setattr(wrapping, "is_terminal", lambda _: True)
    monkeypatch.setattr(saying, "is_terminal", lambda _: True)
    with contextlib.suppress(SystemExit):
        main([*path, "--help"])
    wide = [line for line in capsys.readouterr().out.split("\n") if len(line) > COLUMNS]
    # argparse does not break what excludes one another.
    assert all(COMMAND.match(line) or line.lstrip().startswith(("{", "(--")) for line in wide), wide
