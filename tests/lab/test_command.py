"""`klamm lab` as a command: what it lists, says, keeps, and leaves behind, which is nothing."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from klamm.cli import lab, main
from klamm.lab.catalogue import EXPERIMENTS, Experiment
from klamm.lab.leftovers import tidy_up_after_others
from klamm.lab.measured import Measured
from klamm.lab.problems import LabError
from klamm.lab.stage import Layout, Stage
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def _instead(measured: Callable[[Stage], Measured]) -> Callable[[str], Experiment]:
    """An experiment of this name on a single broker."""
    return lambda name: Experiment(name, "a title", "a plan", Layout(brokers=1), measured)


class Running:
    """An experiment in a process of its own, whose brokers are up."""

    def __init__(self, scratch: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "klamm", "lab", "isr"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
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
