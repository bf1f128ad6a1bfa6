"""The command line teaches: help for everything, and a word for whoever mistypes."""

import subprocess
import sys
from pathlib import Path

import pytest

import klamm.cli
from klamm.cli import COMMANDS, main
from klamm.cli.completion_tree import tree


def test_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"klamm {command}" in said and "examples:" in said


def test_every_verb_explains_itself_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = [command.path for command in tree().walk() if len(command.path) > 1]
    assert len(verbs) > 15
    for words in verbs:
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert "examples:" in said and f"klamm {' '.join(words)}" in said.partition("examples:")[2], words


def test_no_command_hides() -> None:
    """Every file of a command is in the list, so that its help is read above."""
    commands = [each.stem for each in Path(klamm.cli.__file__).parent.glob("*.py") if "\ndef run(" in each.read_text()]
    assert sorted(set(commands) - {"pipeline_generate"}) == sorted(COMMANDS)


def test_a_word_that_is_nearly_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics"]) == 2
    assert "klamm topic" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["topic", "group", "produce", "consume", "config", "bench"])
def test_help_pays_for_no_client_library(command: str) -> None:
    script = (
        "import sys, klamm.cli\n"
        f"try: klamm.cli.main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        "print('confluent_kafka' in sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "False"
