"""The directory of all clusters of one test process, and who tidies it up when that process cannot.

A test process that is killed runs no fixture's end. So a guardian, a small process of its own, waits for its end,
then ends the nodes that are written down in the directory and removes it.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from klamm.local.processes import process_of

PREFIX = "klamm-pytest-"


class Scratch:
    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self._made = 0
        self._guardian: subprocess.Popen[bytes] | None = None

    def guard(self) -> None:
        """From now on somebody tidies up after us. Called when the first cluster is up, which waits for nobody; until
        then nodes end by themselves when we do."""
        if self._guardian is not None:
            return
        ours = process_of(os.getpid())
        command = [sys.executable, "-P", "-m", "klamm.testing.guardian", str(self.directory), str(ours.pid), ours.birth]
        # In a session of its own: Ctrl-C is for the tests, and the guardian outlives them. What it cannot do, nobody
        # would read.
        self._guardian = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def new_directory(self) -> Path:
        """For one cluster; its own to make."""
        self._made += 1
        return self.directory / f"cluster-{self._made}"

    def close(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._guardian is not None:
            assert self._guardian.stdin is not None
            # A word, and not only its end: a child that a test forked may hold this pipe open for long.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._guardian.stdin.fileno(), b"\n")
            self._guardian.stdin.close()
            self._guardian.wait()
