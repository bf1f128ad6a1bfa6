"""`klamm up` on a terminal: the live view, and Ctrl-C; `klamm status --watch`, which leaves the cluster alone."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.local.cluster import LocalCluster
from klamm.local.problems import LocalError
from tests.cli.running import LONG_SECONDS, klamm
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.local.clients import write

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
CTRL_C = b"\x03"
CLEAR = b"\x1b[2J"
COLUMNS, LINES = 150, 40


class Terminal:
    """A program on a terminal of its own: all it has written, and keys."""

    def __init__(self, *words: str) -> None:
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            # A program stays deaf to what it was born deaf to, as under nohup. Here somebody sits at the terminal.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # Not as it was handed down: the readline of a test's own process puts a size into it.
            told = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            command = [sys.executable, "-m", "klamm", *words]
            os.execve(sys.executable, command, {**told, "TERM": "xterm-256color"})
        self.resize(COLUMNS, LINES)
        self._raw = b""
        self.code: int | None = None

    @property
    def text(self) -> str:
        return CONTROL.sub("", self._raw.decode(errors="replace"))

    def forget(self) -> None:
        """What was written so far."""
        self._raw = b""

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + LONG_SECONDS
        while words not in self.text:
            assert self._read() and time.monotonic() < deadline, f"{words!r} did not come:\n{self.text[-3000:]}"

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def was_cleared(self) -> bool:
        return CLEAR in self._raw

    def press(self, key: bytes) -> None:
        os.write(self._descriptor, key)

    def close(self) -> None:
        """Somebody closes the window. Whoever writes there is told that it failed."""
        os.close(self._descriptor)
        self._wait_code()

    def wait_end(self) -> int:
        deadline = time.monotonic() + LONG_SECONDS
        while self._read():
            assert time.monotonic() < deadline, f"it does not end:\n{self.text[-3000:]}"
        return self._wait_code()

    def _wait_code(self) -> int:
        def has_ended() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            return bool(pid)

        wait_until(has_ended, "the program ends", LONG_SECONDS)
        assert self.code is not None
        return self.code

    def _read(self) -> bool:
        """Whatever comes within a moment; whether the program may still say something."""
        if not select.select([self._descriptor], [], [], 0.1)[0]:
            return True
        try:
            more = os.read(self._descriptor, 1 << 16)
        except OSError:
            return False  # Nobody has the terminal's other end any more.
        self._raw += more
        return bool(more)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "cluster"
    yield directory
    cluster = LocalCluster(directory)
    with contextlib.suppress(LocalError):
        cluster.kill(node.node_id for node in cluster.record().nodes)


def test_a_cluster_is_watched_broken_mended_and_stopped(home: Path) -> None:
    terminal = Terminal("up", "--port", "0", "--set", "default.replication.factor=3", "--dir", str(home))
    terminal.wait_for("nothing in it yet")
    servers = LocalCluster(home).record().bootstrap_servers
    assert f"bootstrap servers  {servers}" in terminal.text
    assert "bootstrap servers:" not in terminal.text, "they are said once"
    terminal.wait_for(f"klamm node kill 1 --dir {home}")
    create_topic(servers, "invoice", partitions=4)
    terminal.wait_for("topic invoice is new: 4 partitions, 3 replicas")
    terminal.wait_for("everything in sync")
    write(servers, "invoice", *map(str, range(500)))
    klamm("node", "kill", "1", "--dir", str(home))
    terminal.wait_for("broker 1 is dead")
    terminal.wait_for("broker 1 left the ISR of invoice-0")
    terminal.wait_for(f"klamm node start 1 --dir {home}")
    klamm("node", "start", "1", "--dir", str(home))
    terminal.wait_for("broker 1 runs again")
    terminal.wait_for("broker 1 is back in sync everywhere")
    terminal.press(CTRL_C)
    assert terminal.wait_end() == 0
    assert "Traceback" not in terminal.text and "stopping" in terminal.text
    said = " ".join(terminal.text.split())
    assert said.endswith(f"stopped; `klamm up --dir {home}` starts it again, with its data in {home}")
    assert [state for _, state in LocalCluster(home).states()] == ["dead"] * 3
    assert all("stopped cleanly" in LocalCluster(home).log_of(each).read_text() for each in range(3))


def test_a_cluster_left_running_is_watched_and_left_running(home: Path) -> None:
    assert klamm("up", "--brokers", "1", "--port", "0", "--detach", "--dir", str(home)).code == 0
    terminal = Terminal("status", "--watch", "--dir", str(home))
    terminal.wait_for("controller")
    terminal.press(CTRL_C)
    assert terminal.wait_end() == 0 and "Traceback" not in terminal.text
    assert [state for _, state in LocalCluster(home).states()] == ["running"]
    terminal = Terminal("status", "--watch", "--dir", str(home))
    terminal.wait_for("controller")
    klamm("down", "--dir", str(home))
    assert terminal.wait_end() == 1 and "the cluster was stopped; `klamm up" in terminal.text


def test_nodes_that_die_are_no_end_also_if_all_do(home: Path) -> None:
    """Whoever followed the last frame's hint had a cluster that nobody watched, and Ctrl-C stopped nothing."""
    at = ("--dir", str(home))
    terminal = Terminal("up", "--brokers", "1", "--port", "0", *at)
    terminal.wait_for(f"klamm node kill 0 --dir {home}")
    with subprocess.Popen(
        [sys.executable, "-m", "klamm", "status", "--watch", "--plain", *at], stdout=subprocess.PIPE, text=True
    ) as lines:
        assert lines.stdout is not None and "1 of 1 node running" in lines.stdout.readline()
        klamm("node", "kill", "0", *at)
        terminal.wait_for("broker 0 is dead")
        terminal.wait_for(f"klamm node start 0 --dir {home}")
        terminal.forget()
        assert klamm("node", "start", "0", *at).code == 0
        terminal.wait_for("broker 0 runs again")
        terminal.forget()
        terminal.wait_for(f"klamm node kill 0 --dir {home}")
        terminal.press(CTRL_C)
        assert terminal.wait_end() == 0 and "starts it again, with its data in" in " ".join(terminal.text.split())
        assert [state for _, state in LocalCluster(home).states()] == ["dead"]
        told = [line.partition(" ")[2].rstrip() for line in lines.stdout]
        assert lines.wait(LONG_SECONDS) == 1
    dead = told.index("broker 0 is dead")
    assert told[dead + 2] == f"no node runs any more; `klamm node start 0 --dir {home}` mends it"
    assert told.index("broker 0 runs again") > dead and told[-2] == "broker 0 is stopped"


def test_who_watches_dead_nodes_is_told_that_the_cluster_was_stopped(home: Path) -> None:
    at = ("--dir", str(home))
    terminal = Terminal("up", "--brokers", "1", "--port", "0", *at)
    terminal.wait_for(f"klamm node kill 0 --dir {home}")
    klamm("node", "kill", "0", *at)
    terminal.wait_for(f"klamm node start 0 --dir {home}")
    with subprocess.Popen(
        [sys.executable, "-m", "klamm", "status", "--watch", "--plain", *at], stderr=subprocess.PIPE, text=True
    ) as lines:
        assert klamm("down", *at).out == "no node was running\n"
        assert lines.wait(LONG_SECONDS) == 1 and lines.stderr is not None
        assert "the cluster was stopped; `klamm up" in lines.stderr.read()
    assert terminal.wait_end() == 0 and "the cluster was stopped" in terminal.text
    assert klamm("status", *at).out.endswith(f"stopped; `klamm up --dir {home}` starts it\n")


def test_a_terminal_of_another_size_is_drawn_on_from_its_top(home: Path) -> None:
    """Lines that the terminal has broken anew are not where they were."""
    assert klamm("up", "--brokers", "1", "--port", "0", "--detach", "--dir", str(home)).code == 0
    terminal = Terminal("status", "--watch", "--dir", str(home))
    terminal.wait_for("in B/s")
    assert not terminal.was_cleared
    terminal.forget()
    terminal.resize(50, LINES)
    terminal.wait_for("in sync lagging\n")
    assert terminal.was_cleared
    terminal.press(CTRL_C)
    assert terminal.wait_end() == 0


@pytest.mark.parametrize("how", [(), ("--plain",)])
def test_whoever_closes_the_terminal_stops_the_cluster(home: Path, how: tuple[str, ...]) -> None:
    terminal = Terminal("up", "--brokers", "1", "--port", "0", "--dir", str(home), *how)
    terminal.wait_for("Ctrl-C stops the cluster")
    terminal.close()
    assert [state for _, state in LocalCluster(home).states()] == ["dead"]
    assert "stopped cleanly" in LocalCluster(home).log_of(0).read_text()
