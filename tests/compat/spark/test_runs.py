"""`klamm pipeline run` as a person runs it: killed in the middle, started again, stopped, and brought to the end.

"Each record is in the result exactly once, whatever dies."
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import klamm
from tests.pipeline.runner.shop import FILE
from tests.pipeline.runner.world import check_tables, make_topic, produce

pytestmark = pytest.mark.long

BATCH, FIRST, MORE = 300, 1500, 600
LONG_SECONDS = 600.0


@pytest.fixture
def cluster() -> Iterator[klamm.Cluster]:
    with klamm.Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap_servers)
        yield cluster


def start(file: Path, data: Path, servers: str, *more: str) -> "subprocess.Popen[str]":
    words = ["pipeline", "run", str(file), "--bootstrap", servers, "--data", str(data), "--json", *more]
    command = [sys.executable, "-m", "klamm", *words]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def until_batches(running: "subprocess.Popen[str]", query: str, count: int) -> None:
    """Reads its reports until a query has written so many batches."""
    assert running.stdout is not None
    for line in running.stdout:
        if json.loads(line)["queries"].get(query, {}).get("batches", 0) >= count:
            return
    raise AssertionError(f"it ended too early: {running.stderr.read() if running.stderr else ''}")


def ended(running: "subprocess.Popen[str]") -> tuple[int, dict[str, Any], str]:
    try:
        out, err = running.communicate(timeout=LONG_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    return running.returncode, json.loads(out.splitlines()[-1]) if out else {}, err


def test_killed_then_stopped_then_finished(cluster: klamm.Cluster, tmp_path: Path) -> None:
    file, data, servers = tmp_path / "shop.py", tmp_path / "data", cluster.bootstrap_servers
    file.write_text(FILE)
    produce(servers, 0, FIRST)
    small = ("--batch-records", str(BATCH), "--every", "0")

    running = start(file, data, servers, "--master", "local[2]", *small)
    until_batches(running, "orders", 2)
    running.send_signal(signal.SIGKILL)
    assert running.wait(60) == -signal.SIGKILL

    produce(servers, FIRST, MORE)
    running = start(file, data, servers, "--master", "local[2]", *small)
    until_batches(running, "orders", 1)
    running.send_signal(signal.SIGTERM)
    code, last, err = ended(running)
    assert code == 0 and last["ended"] == "stopped", err
    assert "stopping after this batch" in err and "Traceback" not in err

    code, last, err = ended(start(file, data, servers, "--master", "local[2]", "--once"))
    assert code == 0 and last["ended"] == "done", err
    assert not any(last["queries"]["orders"]["lag"].values())
    check_tables(data, FIRST + MORE)
