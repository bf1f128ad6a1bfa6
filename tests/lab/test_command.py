"""`klamm lab` as a command: what it lists, says, keeps, and leaves behind, which is nothing."""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from klamm.cli import lab, main
from klamm.lab.catalogue import EXPERIMENTS, Experiment
from klamm.lab.leftovers import tidy_up_after_others
from klamm.lab.measured import Measured
from klamm.lab.problems import LabError
from klamm.lab.stage import Layout, Stage
from klamm.local.problems import LocalError
from klamm.local.processes import Process, state_of
from klamm.local.record import read_record
from tests.cli.running import klamm
from tests.harness.waiting import wait_until
from tests.lab.figures import ACKS

Said = pytest.CaptureFixture[str]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where experiments have their directories, here and in commands that are started from here."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_alone_it_lists_the_experiments(capsys: Said) -> None:
    assert main(["lab"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name} " in said and what in said for name, what in EXPERIMENTS.items())
    assert main(["lab", "--json"]) == 0
    assert capsys.readouterr().out.count('"experiment"') == len(EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_will_do(name: str, capsys: Said) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["lab", name, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "brokers start" in said and f"klamm lab {name}" in said


def test_an_experiment_that_is_not_there() -> None:
    ended = klamm("lab", "ack")
    assert ended.code == 2 and "acks" in ended.err


def test_help_pays_for_no_client_library() -> None:
    script = "import sys, klamm.cli; klamm.cli.main(['lab']); print({'confluent_kafka', 'rich'} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "set()"


def test_a_kept_cluster_goes_on_and_can_be_stopped(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    def kill_it(stage: Stage) -> Measured:
        stage.kill(0)
        return ACKS

    monkeypatch.setattr(lab, "experiment", _instead(kill_it))
    assert main(["lab", "acks", "--keep"]) == 0
    said = capsys.readouterr().out
    (directory,) = scratch.iterdir()
    try:
        told = [heading in said for heading in ("What will happen", "What it means", "Measured", "It holds.")]
        assert all(told) and "\x1b" not in said
        assert f"klamm down --dir {directory}\n" in said
        assert klamm("status", "--dir", str(directory)).code == 0
        assert tidy_up_after_others() == [], "kept on purpose"
    finally:
        assert klamm("down", "--dir", str(directory)).code == 0


def test_what_cannot_be_kept_well_is_not_kept(scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    nodes: list[Process] = []

    def note(stage: Stage) -> Measured:
        nodes.extend(node.process for node in stage.record.nodes if node.process is not None)
        return ACKS

    def fail(stage: Stage, *nodes: int) -> None:
        raise LocalError("node 0 ended meanwhile")

    monkeypatch.setattr(lab, "experiment", _instead(note))
    monkeypatch.setattr(Stage, "start", fail)
    assert main(["lab", "acks", "--keep"]) == 1
    said = capsys.readouterr()
    assert "ended meanwhile" in said.err and "klamm down" not in said.out
    assert list(scratch.iterdir()) == [] and [state_of(node) for node in nodes] == ["dead"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_leaves_nothing(scratch: Path, number: signal.Signals) -> None:
    experiment = Running(scratch)
    experiment.process.send_signal(number)
    assert experiment.process.wait(20) == 130
    assert list(scratch.iterdir()) == [] and experiment.living() == []


def test_what_a_killed_one_left_is_removed_by_the_next(scratch: Path) -> None:
    experiment = Running(scratch)
    assert tidy_up_after_others() == [], "its owner lives"
    experiment.process.kill()
    experiment.process.wait(20)
    assert len(experiment.living()) == 3, "brokers outlive whoever started them"
    assert tidy_up_after_others() == [experiment.directory]
    assert list(scratch.iterdir()) == []
    wait_until(lambda: experiment.living() == [], "its brokers are dead")


def test_a_closed_terminal_leaves_nothing(scratch: Path) -> None:
    """It hangs up on the experiment, and takes no more of its words."""
    terminal, theirs = pty.openpty()
    experiment = Running(scratch, theirs)
    os.close(theirs)
    os.close(terminal)
    assert experiment.process.wait(20) != 0
    assert list(scratch.iterdir()) == [] and experiment.living() == []


def test_leftovers_of_others_are_theirs(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may write into the temporary directory, and say there what should be removed and killed."""
    nobody = json.dumps({"pid": os.getpid(), "birth": "another boot:1"})
    elsewhere, link = scratch / "elsewhere", scratch / "klamm-lab-link"
    left = scratch / "klamm-lab-acks-x"
    for directory in (elsewhere, left):
        directory.mkdir()
        (directory / "owner.json").write_text(nobody)
    link.symlink_to(elsewhere)
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    assert tidy_up_after_others() == []
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert tidy_up_after_others() == [left]
    assert not left.exists() and (elsewhere / "owner.json").exists()


def test_a_claim_that_does_not_hold_is_said_and_is_an_exit_code(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    spoiled = replace(ACKS, in_sync_when_the_leader_died=(3,))
    monkeypatch.setattr(lab, "experiment", _instead(lambda stage: spoiled))
    assert main(["lab", "acks"]) == 1
    said = capsys.readouterr().out
    assert "NO   the followers were in sync" in said and "does NOT hold" in said and "It holds" not in said
    for words in (["lab", "acks", "--json"], ["lab", "--json", "acks"]):
        assert main(words) == 1
        assert json.loads(capsys.readouterr().out)["holds"] is False
    assert list(scratch.iterdir()) == []


def test_an_experiment_that_cannot_be_done_says_why_in_a_line(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    def fail(stage: Stage) -> Measured:
        raise LabError("not within 20 s: the sun rises")

    monkeypatch.setattr(lab, "experiment", _instead(fail))
    assert main(["lab", "acks"]) == 1
    assert capsys.readouterr().err == "klamm lab acks: not within 20 s: the sun rises\n"
    assert list(scratch.iterdir()) == []


def test_whoever_has_read_enough_ends_it_without_a_word(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`| head -3`: as of every other command, and not as if a claim did not hold."""
    reading, writing = os.pipe()
    os.close(reading)

    def never(stage: Stage) -> Measured:
        raise AssertionError("nobody listens")

    monkeypatch.setattr(lab, "experiment", _instead(never))
    with open(writing, "w") as nobody, monkeypatch.context() as patch:  # noqa: PTH123
        patch.setattr("sys.stdout", nobody)
        with pytest.raises(BrokenPipeError):
            lab.run(["acks"])
        with contextlib.suppress(BrokenPipeError):
            nobody.close()
    assert list(scratch.iterdir()) == []


def _instead(measured: Callable[[Stage], Measured]) -> Callable[[str], Experiment]:
    """An experiment of this name on a single broker."""
    return lambda name: Experiment(name, "a title", "a plan", Layout(brokers=1), measured)


def _begin(terminal: int | None) -> None:
    """As in a shell, also where whoever runs the tests has been told to outlive its terminal (nohup)."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if terminal is not None:
        _control(terminal)


def _control(terminal: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


class Running:
    """An experiment in a process of its own, whose brokers are up."""

    def __init__(self, scratch: Path, terminal: int | None = None) -> None:
        """Its words on standard error go to the terminal, if it has one."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "klamm", "lab", "isr"],
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if terminal is None else terminal,
            text=True,
            start_new_session=terminal is not None,
            preexec_fn=partial(_begin, terminal),
        )
        assert self.process.stdout is not None
        assert any("brokers are up" in line for line in self.process.stdout), "it begins"
        (self.directory,) = scratch.iterdir()
        record = read_record(self.directory)
        assert record is not None
        self._nodes: list[Process] = [node.process for node in record.nodes if node.process is not None]
        assert len(self.living()) == 3

    def living(self) -> list[Process]:
        return [process for process in self._nodes if state_of(process) != "dead"]
