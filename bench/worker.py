"""Clients run as processes of their own and say on their output when the measured time begins and ends.

A client warms up first, prints `{"event": "begin"}`, works, and prints `{"event": "end", ...}` with what it did. The
harness looks at the broker's process at both lines, so that broker time and client time cover the same stretch. A tool
of somebody else's that says the same in other words is listened to through a `hear` of its own.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.systems import ROOT, Watchable

TIMEOUT_SECONDS = 900


class ClientError(Exception):
    """A client process ended with an error, or without saying what it measured."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a client reported, and what the broker spent and stored between its two lines."""

    said: dict[str, Any]
    cpu_seconds: float
    stored_bytes: int


Hear = Callable[[str], dict[str, Any] | None]


def hear_json(line: str) -> dict[str, Any] | None:
    said: dict[str, Any] | None = json.loads(line) if line.startswith("{") else None
    return said


def watched(command: list[str], system: Watchable, topic: str, hear: Hear = hear_json) -> Work:
    """Run a client to its end beside the running system."""
    with tempfile.TemporaryFile() as errors:
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
        assert client.stdout is not None
        before: tuple[float, int] | None = None
        work = None
        try:
            for line in client.stdout:
                said = hear(line)
                if said is None:
                    continue
                now = system.cpu_seconds(), system.stored_bytes(topic)
                if said["event"] == "begin":
                    before = now
                elif before is not None:
                    work = Work(said, now[0] - before[0], now[1] - before[1])
            client.wait(TIMEOUT_SECONDS)
        finally:
            if client.poll() is None:
                client.kill()
                client.wait()
        if client.returncode != 0 or work is None:
            errors.seek(0)
            raise ClientError(f"{Path(command[0]).name} … {topic}: {errors.read().decode(errors='replace')[-2000:]}")
        return work


def python_module(name: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"bench.{name}", *map(str, arguments)]


def say(event: str, **values: float) -> None:
    print(json.dumps({"event": event, **values}), flush=True)
