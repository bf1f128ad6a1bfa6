"""The command line teaches: help for everything, and a word for whoever mistypes."""

import subprocess
import sys

import pytest

from klamm.cli import COMMANDS, main


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


@pytest.mark.parametrize("verb", ["create", "list", "describe", "placement", "alter", "delete"])
def test_every_verb_of_topic_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topic", verb, "--help"])
    assert ended.value.code == 0 and "--bootstrap" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["list", "describe", "delete", "reset-offsets", "delete-offsets"])
def test_every_verb_of_group_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["group", verb, "--help"])
    assert ended.value.code == 0 and "--bootstrap" in capsys.readouterr().out


def test_a_word_that_is_nearly_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics"]) == 2
    assert "klamm topic" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["topic", "group"])
def test_help_pays_for_no_client_library(command: str) -> None:
    script = (
        "import sys, klamm.cli\n"
        f"try: klamm.cli.main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        "print('confluent_kafka' in sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stderr.strip() == "False"
