"""Acceptance 4 of the front door: a sample project's tests on the pytest fixtures, again and again, and no flake.

Every run is `pytest -n 2` in `examples/pytest_project`, in a temporary directory of its own. It is well if all twenty
tests pass at the first try, if the directory is empty afterwards, and if no process is left that belongs to it.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from proof.store import ROOT, Store, percentile, table

PROJECT = ROOT / "examples" / "pytest_project"
TESTS = 20
WORKERS = 2
MOST_SECONDS = 600
LAST_LINES = 200


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "fixtures", options.fresh)
    while len(store.of("run")) < options.runs:
        line = store.append("run", number=len(store.of("run")) + 1, **one_run())
        print(line, flush=True)
    store.write_summary(summary(store))
    return 0 if all(is_well(line) for line in store.of("run")) else 1


def one_run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="klamm-proof-") as place:
        directory, report = Path(place) / "tmp", Path(place) / "report.xml"
        directory.mkdir()
        command = [sys.executable, "-m", "pytest", "-n", str(WORKERS), "-q", "-p", "no:cacheprovider"]
        began = time.monotonic()
        tests = subprocess.Popen(
            [*command, f"--junitxml={report}"],
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": str(directory)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            said, _ = tests.communicate(timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            tests.send_signal(signal.SIGINT)
            said, _ = tests.communicate()
        except KeyboardInterrupt:
            tests.send_signal(signal.SIGINT)
            tests.communicate()
            raise
        seconds = round(time.monotonic() - began, 1)
        result = {"seconds": seconds, "exit": tests.returncode, **judged(report), **left_behind(directory)}
        if not is_well(result):
            # Shown and not kept: it names paths of this machine.
            print("\n".join(said.splitlines()[-LAST_LINES:]), flush=True)
        return result


def judged(report: Path) -> dict[str, Any]:
    """How the tests ended, and which took longest."""
    if not report.exists():
        return {"passed": 0, "failed": ["no report"]}
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    failed = [_name(case) for case in cases if len(case)]
    slowest = max(cases, key=lambda case: float(case.get("time", 0)), default=None)
    told = {} if slowest is None else {"slowest": _name(slowest), "slowest_seconds": float(slowest.get("time", 0))}
    return {"passed": len(cases) - len(failed), "failed": failed, **told}


def left_behind(directory: Path) -> dict[str, Any]:
    """Files of klamm's, and processes that were started for this directory."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(os.fsencode(directory)) for word in words):
            processes.append(os.fsdecode(b" ".join(words[1:4])))
    return {"files_left": sorted(path.name for path in directory.glob("klamm*")), "processes_left": processes}


def is_well(line: dict[str, Any]) -> bool:
    nothing_left = not line["files_left"] and not line["processes_left"]
    return line["exit"] == 0 and line["passed"] == TESTS and not line["failed"] and nothing_left


def summary(store: Store) -> str:
    runs = store.of("run")
    seconds = [line["seconds"] for line in runs]
    well = sum(map(is_well, runs))
    row = [len(runs), well, len(runs) - well, min(seconds), percentile(seconds, 0.5), max(seconds)]
    return f"""# Fixtures

{__doc__.partition(chr(10) * 2)[2].strip()}

{table(["runs", "well", "not well", "least seconds", "p50", "most"], [row])}"""


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=50)
