"""A broker as a process of its own: started on a free port, stopped or killed by its id, started again.

Which broker stands behind a `Node` is chosen by the variable KLAMM_UNDER_TEST: `klamm` (the default) or `kafka`, Apache
Kafka itself from its jars. A test that passes on both says something true about Kafka, and Klamm keeps it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path

READY_WITHIN_SECONDS = 60.0
STOPPED_WITHIN_SECONDS = 30.0


def under_test() -> str:
    """The broker the tests run against: "klamm" or "kafka"."""
    chosen = os.environ.get("KLAMM_UNDER_TEST", "klamm")
    assert chosen in ("klamm", "kafka"), f"KLAMM_UNDER_TEST is {chosen!r}, it can be klamm or kafka"
    return chosen


def free_port() -> int:
    """A port of the loopback that nobody listens on now. It stays a node's port over its restarts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Node:
    """One broker's process, its data directory and its port. Subclasses know the command line and the signs of life."""

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None, advertise: str | None = None) -> None:
        self.home = home
        self.dir = home / "data"
        self.settings = dict(settings or {})
        self.port = free_port()
        self.advertised = advertise or f"127.0.0.1:{self.port}"
        self._process: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        self._said_something = threading.Event()
        home.mkdir(parents=True, exist_ok=True)

    def __repr__(self) -> str:
        alive = self._process is not None and self._process.poll() is None
        return f"<{type(self).__name__} {self.bootstrap} {f'pid={self.pid}' if alive else 'stopped'}>"

    @property
    def bootstrap(self) -> str:
        """Where clients begin: the advertised address, so that a proxy in between sees every byte."""
        return self.advertised

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node was never started"
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything the process has said so far, over all its lives."""
        errors = self.home / "stderr"
        return "".join(self._said) + (errors.read_text(errors="replace") if errors.exists() else "")

    def start(self) -> None:
        """Starts the process and returns when it takes connections."""
        assert self._process is None or self._process.poll() is not None, f"{self} runs already"
        self.prepare()
        self._said_something.clear()
        with (self.home / "stderr").open("a") as errors:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        try:
            self.wait_ready(time.monotonic() + READY_WITHIN_SECONDS)
        except BaseException:
            self.kill9()
            raise

    def stop(self) -> int:
        """A clean shutdown: SIGTERM, then the exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOPPED_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"{self} did not stop within {STOPPED_WITHIN_SECONDS:.0f} s:\n{self.log}") from None

    def kill9(self) -> None:
        """The end without a goodbye. What the operating system was told before is on the disk."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(STOPPED_WITHIN_SECONDS)

    def restart(self) -> None:
        """The same node again, on the same port and directory; stopped first if it still runs."""
        if self._process is not None and self._process.poll() is None:
            self.stop()
        self.start()

    def discard(self) -> None:
        """The end of a test: the process is gone, and so are its files."""
        if self._process is not None:
            self.kill9()
        shutil.rmtree(self.home, ignore_errors=True)

    def prepare(self) -> None:
        """What has to be on the disk before the process starts."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def wait_ready(self, deadline: float) -> None:
        raise NotImplementedError

    def wait_first_line(self, deadline: float) -> None:
        """Until the process has printed its first line, or has ended without one."""
        self._said_something.wait(deadline - time.monotonic())
        assert self._process is not None
        alive = self._process.poll() is None
        assert self._said_something.is_set() and alive, f"{self} did not get ready:\n{self.log}"

    def wait_accepting(self, deadline: float) -> None:
        """Until the port takes a connection."""
        assert self._process is not None
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise AssertionError(f"{self} takes no connections:\n{self.log}")

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._said.append(line)
                self._said_something.set()
        self._said_something.set()
