"""The command line as a person's shell runs it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

LONG_SECONDS = 300.0


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def klamm(*words: str, cwd: Path | None = None) -> Ended:
    """`klamm` with these words, to its end. A stack trace is never an answer."""
    command = [sys.executable, "-m", "klamm", *words]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONG_SECONDS, check=False, cwd=cwd
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return Ended(ended.returncode, ended.stdout, ended.stderr)
