"""What the tests of `klamm produce` and `klamm consume` share: input from a file, and commands that run meanwhile."""

import select
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

from tests.cli.conftest import Klamm

LONG_SECONDS = 300.0
SOON_SECONDS = 20.0


def produce(klamm_command: Klamm, topic: str, tmp_path: Path, data: bytes, *words: str) -> tuple[int, bytes, str]:
    (tmp_path / "input").write_bytes(data)
    return klamm_command("produce", topic, "--file", str(tmp_path / "input"), *words)


def begun(*words: str, **others: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "klamm", *words], **others)


def soon_line_of(pipe: IO[bytes] | None) -> bytes:
    """Of a command that may say nothing at all."""
    assert select.select([pipe], [], [], SOON_SECONDS)[0], "nothing is said"
    return line_of(pipe)


def line_of(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    return pipe.readline()
