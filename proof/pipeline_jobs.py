"""The two programs of the pipeline's proof, as a user starts them: `klamm pipeline generate` and `klamm pipeline run`.

A run that dies is started again, however often, and has to go on from where it was. Its processes are found as children
of the one that was started here, and nobody else's are touched.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from proof.cluster import ProofError

KLAMM = (sys.executable, "-m", "klamm", "pipeline")
EXECUTOR = "CoarseGrainedExecutorBackend"
LOOK_AGAIN_SECONDS = 0.2
STOP_SECONDS = 180.0


class Generating:
    """Invoices on their way, and the ledger when they have arrived."""

    def __init__(self, directory: Path, servers: str, seed: int, how: list[str]) -> None:
        self.ledger = directory / "ledger.json"
        self._log = directory / "generate.txt"
        command = [*KLAMM, "generate", "--bootstrap", servers, "--ledger", str(self.ledger)]
        self._process = _started([*command, "--seed", str(seed), *how], self._log)

    def wait(self, timeout_seconds: float) -> None:
        try:
            code = self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            raise ProofError(f"the generator is not done after {timeout_seconds:.0f} s:\n{self.said}") from None
        if code:
            raise ProofError(f"the generator ended with {code}:\n{self.said}")

    def stop(self, timeout_seconds: float) -> None:
        """As Ctrl-C does: what is on its way arrives first."""
        self._process.send_signal(signal.SIGTERM)
        self.wait(timeout_seconds)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]


class Pipeline:
    """`klamm pipeline run`, started as often as it takes."""

    def __init__(self, directory: Path, servers: str, file: Path, master: str, options: list[str]) -> None:
        self.tables = directory / "data" / "tables"
        self.starts = 0
        self._log = directory / "run.txt"
        self._command = [*KLAMM, "run", str(file), "--bootstrap", servers, "--data", str(directory / "data")]
        self._command += ["--master", master, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        assert self._process is None or self._process.poll() is not None, "one at a time"
        self._process = _started([*self._command, *more], self._log)
        self.starts += 1

    def maybe_start_again(self) -> bool:
        """If it is down: it gave up because of something that was done to it."""
        if self._process is not None and self._process.poll() is None:
            return False
        self.start()
        return True

    def drain(self, timeout_seconds: float, most_starts: int = 1) -> None:
        """Everything that is in the topic, into the tables."""
        until = time.monotonic() + timeout_seconds
        for _ in range(most_starts):
            self.start("--once")
            assert self._process is not None
            try:
                if self._process.wait(max(1.0, until - time.monotonic())) == 0:
                    return
            except subprocess.TimeoutExpired:
                break
        raise ProofError(f"the pipeline has not drained the topic in {timeout_seconds:.0f} s:\n{self.said}")

    def stop(self) -> None:
        """As Ctrl-C does; one that is stuck is killed."""
        if self._process is None or self._process.poll() is not None:
            return
        children = self._family()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _wait_gone(children)

    def kill_driver(self, which: str) -> bool:
        """Its Python, its Java, or both at once; whether there was something to kill."""
        if self._process is None or self._process.poll() is not None:
            return False
        family = self._family()
        java = [each for each in family if _is_java(each) and not _is_executor(each)]
        for each in java if which != "python" else []:
            _kill(each)
        if which != "java":
            self._process.kill()
        self._process.wait(STOP_SECONDS)
        _wait_gone(family)
        return True

    def kill_executor(self, choice: int) -> bool:
        executors = sorted((each for each in self._family() if _is_executor(each)), key=lambda each: each.pid)
        if not executors:
            return False
        _kill(executors[choice % len(executors)])
        return True

    def kill(self) -> None:
        self.kill_driver("both")

    @property
    def commits(self) -> int:
        """To all tables so far."""
        return sum(1 for _ in self.tables.glob("*/_delta_log/*.json"))

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")[-3_000:]

    def _family(self) -> list[psutil.Process]:
        if self._process is None:
            return []
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []


def _started(command: list[str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )


def _is_java(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.Error:
        return False


def _is_executor(process: psutil.Process) -> bool:
    try:
        return _is_java(process) and any(EXECUTOR in word for word in process.cmdline())
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def _wait_gone(processes: list[psutil.Process]) -> None:
    """Children notice that their parent is gone, and end. One that does not is a second driver at the same tables: it
    is left alone, since that has to be safe, but not for ever."""
    _, alive = psutil.wait_procs(processes, timeout=20)
    for process in alive:
        _kill(process)
