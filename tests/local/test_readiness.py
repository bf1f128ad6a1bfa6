"""Waiting for nodes that start: who says the word is up, and who ends before that is quoted."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from klamm.local.asking import Address
from klamm.local.problems import NodeDidNotStart
from klamm.local.processes import process_of, started
from klamm.local.readiness import Starting, wait_ready

NOBODY = Address("127.0.0.1", 1)


def starting(log: Path, command: Sequence[str], said_before: int = 0, will_serve: bool = True) -> Starting:
    child = started(command, log)
    return Starting(4, process_of(child.pid), NOBODY, log, said_before, will_serve)


def unheard(node_id: int) -> None:
    raise AssertionError("nobody is up")


def test_a_node_that_ends_is_quoted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("what it said in an earlier life: takes connections\n")
    node = starting(log, ["sh", "-c", "echo no such setting >&2; exit 2"], said_before=log.stat().st_size)
    with pytest.raises(NodeDidNotStart) as problem:
        wait_ready([node], 30.0, unheard)
    told = str(problem.value)
    assert problem.value.node_id == 4 and "node 4 ended before it was ready" in told
    assert str(log) in told and "no such setting" in told and "earlier life" not in told


def test_only_the_end_of_much_is_quoted(tmp_path: Path) -> None:
    node = starting(tmp_path / "log", ["sh", "-c", "seq 1000 1999"])
    with pytest.raises(NodeDidNotStart) as problem:
        wait_ready([node], 30.0, unheard)
    assert "1999" in str(problem.value) and "1001" not in str(problem.value)


@pytest.mark.parametrize("will_serve", [True, False], ids=["broker", "witness"])
def test_a_node_that_is_silent_for_too_long(tmp_path: Path, will_serve: bool) -> None:
    node = starting(tmp_path / "log", ["sleep", "300"], will_serve=will_serve)
    try:
        with pytest.raises(NodeDidNotStart, match="still does not take connections"):
            wait_ready([node], 0.0, unheard)
    finally:
        _end(node)


def test_a_node_that_says_so_and_serves_nobody(tmp_path: Path) -> None:
    node = starting(tmp_path / "log", ["sh", "-c", "echo it takes connections; exec sleep 300"])
    up: list[int] = []
    try:
        with pytest.raises(NodeDidNotStart, match="does not know all other brokers"):
            wait_ready([node], 1.0, up.append)
        assert up == [4]
    finally:
        _end(node)


def _end(node: Starting) -> None:
    import os
    import signal

    os.kill(node.process.pid, signal.SIGKILL)
    os.waitpid(node.process.pid, 0)
