"""`klamm sim` and `klamm chaos` from the shell: a run, many, the results kept, and a word for whoever mistypes."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.cli import chaos
from tests.cli.running import klamm
from tests.harness.waiting import wait_until

SEED = "3"


def test_one_simulated_run_is_the_same_again_and_is_told() -> None:
    first, again = klamm("sim", "--seed", SEED), klamm("sim", "--seed", SEED, "--json")
    assert (first.code, again.code) == (0, 0)
    assert first.out.startswith(f"seed {SEED}: ") and "every promise was kept" in first.out
    assert again.json["broken"] is None and again.json["acknowledged"] > 0
    assert f"hash of all events: {again.json['hash']}" in first.out
    told = klamm("sim", "--seed", SEED, "--seconds", "2", "--verbose")
    assert told.code == 0 and len(told.out.splitlines()) > 20


def test_many_simulated_runs_leave_a_line(tmp_path: Path) -> None:
    results = tmp_path / "sim.jsonl"
    words = ("--first", "5", "--seeds", "2", "--jobs", "2", "--seconds", "2", "--results", str(results))
    ended = klamm("sim", *words, "--json")
    (line,) = results.read_text().splitlines()
    alone = [klamm("sim", "--seed", seed, "--seconds", "2", "--json").json for seed in ("5", "6")]
    assert ended.json["events"] == sum(run["events"] for run in alone), "also many last as long as they are told to"
    assert ended.json["troubleSeconds"] == 2
    assert ended.code == 0 and ended.json["runs"] == json.loads(line)["runs"] == 2
    assert json.loads(line)["acknowledged"] == ended.json["acknowledged"] > 0


def test_real_processes_under_faults(tmp_path: Path) -> None:
    results = tmp_path / "chaos.jsonl"
    ended = klamm("chaos", "--seed", "0", "--seconds", "2", "--loopback", "--json", "--results", str(results))
    assert ended.code == 0, ended
    (run,) = ended.json
    assert (run["where"], run["lost"], run["doubled"], run["broken"]) == ("loopback", 0, 0, [])
    assert run["acknowledged"] > 0 and run["read"] > 0
    assert [json.loads(line)["seed"] for line in results.read_text().splitlines()] == [0]


def test_runs_that_are_interrupted_are_told_of() -> None:
    """Also where nobody looks on: it says how far it is, now and then, and what it came to in the end."""
    often = "import klamm.cli.progress as p; p.LINE_SECONDS = 0.05; from klamm.cli import main; main"
    words = ["sim", "--seeds", "1000", "--seconds", "1", "--jobs", "2", "--json"]
    command = [sys.executable, "-c", f"import sys; {often}; sys.exit(main({words!r}))"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stderr is not None
    assert re.match(r"\d+ of 1,000 runs, 0\.\d simulated hours, \d+ faults\n", running.stderr.readline())
    # As a terminal does it: to all of its processes.
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    told = json.loads(out)
    assert running.returncode == 130 and told["interrupted"] and told["runs"] >= 1
    assert err.splitlines()[-1] == f"interrupted after {told['runs']} of 1,000 runs"
    assert "ForkPoolWorker" not in err and "Traceback" not in err


def test_a_process_that_is_interrupted_as_it_is_born_says_nothing() -> None:
    hit = "import os, signal; os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))"
    words = ["sim", "--seeds", "2", "--seconds", "1", "--jobs", "2"]
    command = [sys.executable, "-c", f"{hit}; import sys; from klamm.cli import main; sys.exit(main({words!r}))"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended


def test_chaos_says_what_is_going_on_and_which_runs_were_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from klamm.chaos import run as running
    from klamm.chaos.abilities import Abilities
    from klamm.chaos.plan import Plan

    def run_once(plan: Plan, abilities: Abilities, keep: bool, show: Callable[[str], None]) -> running.Outcome:
        show("   0.100  pause broker 2 for 3.0 s")
        if plan.seed == 6:
            raise KeyboardInterrupt
        wait_until(lambda: "pause broker 2" in err.getvalue(), "it says what is going on", within_seconds=60)
        return running.Outcome(plan, "loopback", sent=5)

    # What is no terminal is no part of one either, as narrow as it may be.
    monkeypatch.setenv("COLUMNS", "30")
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(running, "run_once", run_once)
    monkeypatch.setattr("klamm.cli.progress.LINE_SECONDS", 0.1)
    assert chaos.run(["--loopback", "--seed", "5", "--runs", "3"]) == 130
    assert re.search(r"run 1 of 3, seed 5, \d+ s \(trouble for 60\): pause broker 2 for 3\.0 s\n", err.getvalue())
    assert err.getvalue().endswith("interrupted in run 2 of 3, seed 6\n")
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 of 1 run kept every promise: 5 sent")


def test_what_there_is_not_to_be_left_out_is_said() -> None:
    for command in ("sim", "chaos"):
        ended = klamm(command, "--without", "pause,kil")
        assert ended.code == 2 and "kil. Did you mean kill?\n" in ended.err, ended
        ended = klamm(command, "--without", "earthquakes")
        assert ended.code == 2 and "earthquakes" in ended.err and "pause" in ended.err, ended
