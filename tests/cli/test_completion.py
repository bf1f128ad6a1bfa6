"""`klamm completion`: the scripts know what the parsers know. bash is asked; zsh and fish where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from klamm.cli import COMMANDS, main
from klamm.cli.completion_scripts import SCRIPTS
from klamm.cli.completion_tree import FILES, GROUPS, TOPICS, Command, tree
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.record import write_record
from tests.cli.conftest import Klamm
from tests.harness.topics import create_topic

TOPIC_VERBS = ["create", "list", "describe", "placement", "alter", "delete", "elect", "move", "moves"]

ASKED = """\
compopt() { :; }
source "$1"; shift
COMP_LINE="$*" COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
_klamm
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def root() -> Command:
    return tree()


@pytest.fixture(scope="module")
def home(root: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `klamm` to find on the path, and the scripts."""
    home = tmp_path_factory.mktemp("completion")
    (home / "klamm").write_text(f'#!/bin/sh\nexec {sys.executable} -m klamm "$@"\n')
    (home / "klamm").chmod(0o755)
    for shell, script in SCRIPTS.items():
        (home / f"_{shell}").write_text(script(root))
    return home


def offered(home: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    environment = {**os.environ, "PATH": f"{home}:{os.environ['PATH']}"}
    command = ["bash", "-c", ASKED, "bash", str(home / "_bash"), "klamm", *words]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    assert ended.stderr == ""
    return ended.stdout.split()


def test_the_tree_knows_every_command_and_verb(root: Command) -> None:
    paths = {" ".join(each.path) for each in root.walk()}
    assert set(COMMANDS) < paths
    assert {"topic create", "group reset-offsets", "config show", "pipeline generate", "pipeline run"} < paths
    (consume,) = [each for each in root.walk() if each.path == ("consume",)]
    takes = {flag: option.takes for option in consume.options for flag in option.flags}
    assert takes["--follow"] is None and takes["--group"] is not None and takes["--group"].kind == GROUPS
    assert takes["--isolation"] is not None and takes["--isolation"].words == ("read_committed", "read_uncommitted")
    assert [each.kind for each in consume.arguments] == [TOPICS]
    (produce,) = [each for each in root.walk() if each.path == ("produce",)]
    assert FILES in [option.takes.kind for option in produce.options if option.takes]


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_every_option_is_in_every_script(shell: str, root: Command) -> None:
    script = SCRIPTS[shell](root)
    for command in root.walk():
        assert all(verb.path[-1] in script for verb in command.verbs)
        for option in command.options:
            for flag in option.flags:
                assert (flag if shell != "fish" else flag.lstrip("-")) in script, (command.path, flag)


def test_bash_offers_what_may_follow(home: Path, tmp_path: Path) -> None:
    assert offered(home, "") == list(COMMANDS)
    assert offered(home, "to") == ["topic"]
    assert offered(home, "topic", "") == TOPIC_VERBS
    assert offered(home, "topic", "move", "x", "--re") == ["--replicas", "--replication", "--replication-factor"]
    assert offered(home, "topic", "create", "x", "--p") == ["--partitions"]
    assert offered(home, "consume", "--isolation", "") == ["read_committed", "read_uncommitted"]
    assert offered(home, "config", "show", "b") == ["broker"]
    assert offered(home, "topic", "create", "--partitions", "") == []
    assert "retention.ms" in offered(home, "config", "set", "topic", "invoice", "ret")
    assert offered(home, "config", "show", "broker", "0", "log.retention.h") == ["log.retention.hours"]
    assert offered(home, "topic", "create", "x", "--config", "min.ins") == ["min.insync.replicas"]
    for name in ("jobs.py", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "more").mkdir()
    here = [f"{tmp_path}/{name}" for name in ("jobs.py", "more")]
    assert offered(home, "pipeline", "run", f"{tmp_path}/") == here
    (tmp_path / "values.txt").touch()
    assert offered(home, "produce", "x", "--file", f"{tmp_path}/v") == [f"{tmp_path}/values.txt"]
    assert offered(home, "up", "--dir", f"{tmp_path.parent}/{tmp_path.name[:-1]}") != []


def test_a_word_that_was_chosen_is_not_offered_again(home: Path, tmp_path: Path) -> None:
    write_record(tmp_path, with_ports(new_cluster(Wish(3, 1), Random(1)), [1, 2, 3]))
    assert offered(home, "node", "") == ["stop", "kill", "pause", "resume", "start"]
    assert offered(home, "node", "--dir", str(tmp_path), "kill", "") == ["0", "1", "2"]
    assert offered(home, "node", "kill", "--dir", str(tmp_path), "0", "") == ["0", "1", "2"]
    assert offered(home, "node", "kill", "--dir", str(tmp_path / "nowhere"), "") == []
    assert offered(home, "config", "show", "") == ["topic", "broker"]
    assert offered(home, "config", "show", "--bootstrap", "127.0.0.1:1", "topic", "") == []
    assert offered(home, "config", "show", "topic", "--al") == ["--all"]


def test_places_in_a_log_are_offered(home: Path) -> None:
    assert offered(home, "consume", "x", "--from", "") == ["beginning", "end"]


def test_bash_offers_the_names_that_the_cluster_knows(
    home: Path, klamm_command: Klamm, servers: str, topic: str
) -> None:
    create_topic(servers, topic, 1)
    assert offered(home, "consume", "--bootstrap", servers, topic[:-1]) == [topic]
    klamm_command("consume", topic, "--group", f"{topic}-group")
    klamm_command("produce", topic, "--value", "x")
    klamm_command("consume", topic, "--group", f"{topic}-group")
    assert offered(home, "group", "describe", "--bootstrap", servers, topic) == [f"{topic}-group"]


def test_nobody_there_is_no_trouble_for_whoever_presses_a_key(home: Path) -> None:
    assert offered(home, "consume", "--bootstrap", "127.0.0.1:1", "") == []
    assert offered(home, "consume", "--bootstrap", "nonsense", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_can_read_its_script(shell: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == (home / f"_{shell}").read_text()
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(home / f"_{shell}")], check=True, timeout=60)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_what_may_follow(home: Path) -> None:
    def fish(line: str) -> list[str]:
        command = f"source {home}/_fish; complete -C '{line}'"
        asked = ["fish", "-N", "-c", command]
        ended = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True, cwd=home)
        return [each.split("\t")[0] for each in ended.stdout.splitlines()]

    assert fish("klamm to") == ["topic"]
    assert set(fish("klamm topic ")) == set(TOPIC_VERBS)
    assert fish("klamm topic create --p") == ["--partitions"]
    assert set(fish("klamm node ")) == {"stop", "kill", "pause", "resume", "start"}
    assert fish("klamm node kill ") == []
    assert set(fish("klamm consume --isolation ")) == {"read_committed", "read_uncommitted"}
