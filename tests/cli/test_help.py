"""The command line teaches: help for everything, and a word for whoever mistypes."""

import os
import subprocess
import sys
from importlib import import_module
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
    verbs = [command.path for command in tree().walk() if len(command.path) > 1 and not command.is_choice]
    assert len(verbs) > 15
    for words in verbs:
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert "examples:" in said and f"klamm {' '.join(words)}" in said.partition("examples:")[2], words


def test_up_says_when_it_returns_and_when_it_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "With --detach it returns when every broker takes connections" in said
    assert "Without --detach the command stays" in said


def test_no_command_hides() -> None:
    """Every file of a command is in the list, so that its help is read above."""
    commands = [each.stem for each in Path(klamm.cli.__file__).parent.glob("*.py") if "\ndef run(" in each.read_text()]
    assert sorted(set(commands) - {"pipeline_generate"}) == sorted(COMMANDS)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), ("up", "--help"), ("completion", "bash"), ("lab",)], ids=" ".join
)
def test_a_full_disk_is_one_line(words: tuple[str, ...], unbuffered: str, tmp_path: Path) -> None:
    """Each had a stack trace, and the help of a command nothing at all and exit code 0."""
    command = [sys.executable, "-m", "klamm", *words]
    with Path("/dev/full").open("wb") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path, env=environment
        )
    name = "klamm" if words[0].startswith("-") else f"klamm {words[0]}"
    assert (ended.returncode, ended.stderr) == (1, f"{name}: No space left on device\n")


def test_a_word_that_is_nearly_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics"]) == 2
    assert "klamm topic" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["topic", "group", "config", "node", "pipeline"])
def test_a_command_without_its_verb_shows_the_verbs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    verbs = [each.path[-1] for each in tree().walk() if each.path[:1] == (command,) and each.path[1:]]
    assert "examples:" in said.err and all(verb in said.err for verb in verbs)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("topic", "ls"), "klamm topic: error: argument VERB: there is no ls. Did you mean list?"),
        (("group", "frobnicate"), "there is no frobnicate. There is list, describe, delete"),
        (("node", "kil", "1"), "there is no kil. Did you mean kill?"),
        (("topic", "create", "x", "--partitons", "3"), "there is no option --partitons. Did you mean --partitions?"),
        (("topic", "create", "x", "--partitons=3"), "there is no option --partitons. Did you mean --partitions?"),
        (("topic", "describe", "x", "--frobnicate"), "klamm topic describe: error: there is no option --frobnicate."),
        (("consume", "--topic", "x"), "there is no option --topic: here it is TOPIC, a word of its own"),
        (("topic", "create", "--topic", "x"), "there is no option --topic: here it is NAME, a word of its own"),
        (("bench", "--topic", "x"), "klamm bench: error: there is no option --topic."),
        (("down", "--topic", "x"), "klamm down: error: there is no option --topic."),
        (("group", "reset", "x"), "there is no reset. Did you mean reset-offsets?"),
        (("config", "show", "orders"), "klamm config show: error: expected topic or broker, and then its name: is"),
        (("config", "show", "topic"), "the following arguments are required: TOPIC|BROKER\n"),
        (("consume", "x", "--max-messages", "3"), "there is no option --max-messages: here it is --count"),
        (("consume", "x", "y"), "klamm consume: error: what is y for?"),
    ],
)
def test_who_mistypes_is_told_what_was_meant(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_usage_is_that_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["topic", "create", "x", "--partitons", "3"])
    assert capsys.readouterr().err.startswith("usage: klamm topic create ")


@pytest.mark.parametrize(
    ("command", "words", "meant"),
    [
        ("topic", ("create", "x", "--replication-factor", "3"), {"replication": 3}),
        ("topic", ("create", "x", "--replicas", "3"), {"replication": 3}),
        ("topic", ("list", "-b", "there:9092"), {"bootstrap": "there:9092"}),
        ("topic", ("list", "--bootstrap-server", "there:9092"), {"bootstrap": "there:9092"}),
        ("consume", ("x", "--from-beginning"), {"begin": "beginning"}),
    ],
)
def test_what_everybody_types_who_knows_kafka(command: str, words: tuple[str, ...], meant: dict[str, object]) -> None:
    options = vars(import_module(f"klamm.cli.{command}").make_parser().parse_args(words))
    assert {key: options[key] for key in meant} == meant


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
