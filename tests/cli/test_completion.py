"""`klamm completion`: the scripts know what the parsers know. bash is asked; zsh and fish where they are installed."""

import io
import os
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from random import Random

import pytest

from klamm.cli import COMMANDS, main
from klamm.cli.completion_scripts import SCRIPTS
from klamm.cli.completion_tree import FILES, GROUPS, TOPICS, Command, tree
from klamm.cli.node import VERBS
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.processes import process_of
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
    assert offered(home, "node", "--dir", str(tmp_path), "start", "") == ["0", "1", "2"]
    assert offered(home, "node", "start", "--dir", str(tmp_path), "0", "") == ["1", "2"]
    assert offered(home, "node", "start", "--dir", str(tmp_path), "0", "1") == ["1"]
    assert offered(home, "node", "start", "--dir", str(tmp_path), "--timeout", "1", "") == ["0", "1", "2"]
    assert offered(home, "node", "start", "--dir", str(tmp_path), "--timeout=1", "2", "") == ["0", "1"]
    assert offered(home, "node", "kill", "--dir", str(tmp_path / "nowhere"), "") == []
    assert offered(home, "config", "show", "") == ["topic", "broker"]
    assert offered(home, "config", "show", "--bootstrap", "127.0.0.1:1", "topic", "") == []
    assert offered(home, "config", "show", "topic", "--al") == ["--all"]


def test_a_verb_is_offered_the_nodes_to_whom_it_can_be_done(home: Path, tmp_path: Path) -> None:
    """Node 0 runs, node 1 is paused, node 2 does not run. The words as zsh and fish give them: the last is yet to be
    finished."""
    with subprocess.Popen(["sleep", "1000"]) as paused:
        try:
            paused.send_signal(signal.SIGSTOP)
            os.waitpid(paused.pid, os.WUNTRACED)
            record = with_ports(new_cluster(Wish(3, 1), Random(1)), [1, 2, 3])
            processes = {0: process_of(os.getpid()), 1: process_of(paused.pid)}
            write_record(tmp_path, record.with_processes(processes))
            found = {verb: names("nodes", "node", verb, "--dir", str(tmp_path), "") for verb in VERBS}
            assert names("nodes", "node", "kill", "0", "--dir", str(tmp_path), "1") == ["1"]
            assert names("nodes", "config", "show", "broker", "--dir", str(tmp_path), "") == ["0", "1", "2", "all"]
            assert names("nodes", "config", "set", "broker", "0", "--dir", str(tmp_path), "") == []
            assert offered(home, "node", "resume", "--dir", str(tmp_path), "") == ["1"]
        finally:
            paused.kill()
    assert found == {"stop": ["0", "1"], "kill": ["0", "1"], "pause": ["0"], "resume": ["1"], "start": ["2"]}


def names(*words: str) -> list[str]:
    """As the scripts ask for them."""
    said = io.StringIO()
    with redirect_stdout(said):
        assert main(["completion", "--names", *words]) == 0
    return said.getvalue().split()


def test_settings_that_a_broker_refuses_are_not_offered(home: Path) -> None:
    assert offered(home, "config", "set", "topic", "invoice", "remote.s") == []
    assert offered(home, "topic", "create", "x", "--config", "remote.s") == []
    assert offered(home, "config", "set", "broker", "0", "ssl.key.pass") == []
    assert offered(home, "config", "show", "topic", "invoice", "remote.s") == ["remote.storage.enable"]
    assert "retention.ms" in names("topic-settings", "config", "set", "topic", "invoice", "")
    assert "remote.storage.enable" not in names("topic-settings", "config", "set", "topic", "invoice", "")


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
    assert offered(home, "topic", "describe", "--bootstrap", servers, "__cons") == ["__consumer_offsets"]
    assert offered(home, "topic", "delete", "--bootstrap", servers, "__cons") == []
    assert offered(home, "topic", "delete", "--bootstrap", servers, topic) == [topic]
    assert offered(home, "topic", "delete", topic, "--bootstrap", servers, topic) == [], "named already"


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
