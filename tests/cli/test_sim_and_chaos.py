"""`klamm sim` and `klamm chaos` from the shell: a run, many, the results kept, and a word for whoever mistypes."""

import json
from pathlib import Path

from tests.cli.running import klamm

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


def test_what_there_is_not_to_be_left_out_is_said() -> None:
    for command in ("sim", "chaos"):
        ended = klamm(command, "--without", "earthquakes")
        assert ended.code == 2 and "earthquakes" in ended.err and "pause" in ended.err, ended
