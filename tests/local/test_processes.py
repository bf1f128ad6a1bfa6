"""Processes: states, signals, and that a number given to somebody else is never signalled."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.local.processes import Process, Watch, process_of, signal_to, started, state_of, wait_ended
from tests.harness.waiting import wait_until

COMMAND = ["sleep", "300"]
LONG_SECONDS = 20.0


@pytest.fixture
def child(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    running = started(COMMAND, tmp_path / "log")
    yield running
    running.kill()
    running.wait()


def test_a_process_is_paused_resumed_and_ended(child: "subprocess.Popen[bytes]") -> None:
    process = process_of(child.pid)
    assert state_of(process) == "running"
    assert signal_to(process, signal.SIGSTOP)
    wait_until(lambda: state_of(process) == "paused", "it stands still")
    assert signal_to(process, signal.SIGCONT)
    wait_until(lambda: state_of(process) == "running", "it goes on")
    assert not wait_ended(process, 0.0)
    assert signal_to(process, signal.SIGTERM)
    assert wait_ended(process, LONG_SECONDS)
    assert state_of(process) == "dead", "though nobody has waited for it yet, and the system still knows its number"
    child.wait()
    assert state_of(process) == "dead"
    assert not signal_to(process, signal.SIGTERM), "nobody is there to hear it"


def test_a_number_that_was_given_to_another_is_not_signalled(child: "subprocess.Popen[bytes]") -> None:
    """The node that we remember was born in another tick; its number is somebody else's now."""
    somebody_else = process_of(child.pid)
    boot, tick = somebody_else.birth.split(":")
    for birth in (f"{boot}:{int(tick) - 1}", f"another-boot:{tick}"):
        ours = Process(child.pid, birth)
        assert state_of(ours) == "dead"
        assert not signal_to(ours, signal.SIGKILL)
        assert wait_ended(ours, LONG_SECONDS), "ours has ended long ago"
    assert child.poll() is None and state_of(somebody_else) == "running"


def test_a_watch_tells_who_ended(child: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    other = started(COMMAND, tmp_path / "other")
    processes = [process_of(child.pid), process_of(other.pid)]
    with Watch(processes) as watch:
        assert watch.wait_ended(0.0) == []
        other.kill()
        assert watch.wait_ended(LONG_SECONDS) == processes[1:]
        other.wait()
        assert watch.wait_ended(LONG_SECONDS) == processes[1:], "and again, as often as it is asked"
    with Watch(processes) as late:
        assert late.wait_ended(LONG_SECONDS) == processes[1:], "also of those that were gone before"


def test_a_watch_among_a_thousand_open_files(child: "subprocess.Popen[bytes]") -> None:
    with ExitStack() as many:
        descriptor = -1
        while descriptor < 1024:
            descriptor = os.dup(0)
            many.callback(os.close, descriptor)
        process = process_of(child.pid)
        assert not wait_ended(process, 0.0)
        child.kill()
        assert wait_ended(process, LONG_SECONDS)


def test_what_a_process_says_is_appended_to_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    started(["sh", "-c", "echo out; echo err >&2"], log).wait()
    assert log.read_text() == "before\nout\nerr\n"


def test_a_process_is_in_a_session_of_its_own(child: "subprocess.Popen[bytes]") -> None:
    """So that Ctrl-C in the terminal, and its end, are not its own."""
    fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[3]) == child.pid, "its session is named after it"
