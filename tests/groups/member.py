"""A member's process as a test has it: started, paused, killed or told to go, and everything it has told so far."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

ROOT = Path(__file__).parents[2]
GONE_WITHIN_SECONDS = 20.0
PYTHON = {
    name: (sys.executable, "-m", f"tests.groups.members.{module}")
    for name, module in {
        "confluent-kafka": "confluent_member",
        "kafka-python": "kafka_python_member",
        "aiokafka": "aiokafka_member",
    }.items()
}
Command: TypeAlias = Sequence[str]


class Told(NamedTuple):
    """One thing a member has told, or what was done to it: "killed", "paused", "resumed"."""

    what: str
    at: float
    partitions: tuple[int, ...] = ()
    first: int = -1
    last: int = -1
    offsets: tuple[tuple[int, int], ...] = ()
    why: str = ""


class Member:
    """`command` is the program of one client library; `options` are what `telling.asked` knows."""

    def __init__(self, name: str, command: Command, options: Mapping[str, object]) -> None:
        self.name = name
        self.told: list[Told] = []
        self.complaints = ""
        arguments = [text for option, value in options.items() for text in (f"--{option}", str(value))]
        self._process = subprocess.Popen(
            [*command, "--client-id", name, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listeners = [threading.Thread(target=hear, daemon=True) for hear in (self._hear, self._hear_complaints)]
        for listener in self._listeners:
            listener.start()

    def __repr__(self) -> str:
        state = "runs" if self.runs else f"ended {self._process.returncode}"
        return f"<{self.name} {state} owns={sorted(self.owned)}>"

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def owned(self) -> set[int]:
        """What it believes to be its own now."""
        owned: set[int] = set()
        for one in list(self.told):
            if one.what == "assigned":
                owned |= set(one.partitions)
            elif one.what in ("revoked", "lost"):
                owned -= set(one.partitions)
            elif one.what in ("closed", "killed"):
                owned.clear()
        return owned

    def has_told(self, what: str) -> list[Told]:
        return [one for one in list(self.told) if one.what == what]

    def kill9(self) -> None:
        self._note("killed")
        self._process.kill()
        self._ended()

    def pause(self) -> None:
        self._note("paused")
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._note("resumed")
        self._process.send_signal(signal.SIGCONT)

    def leave(self) -> None:
        """Told to go; returns when it has gone, which it has to say."""
        self.told_to_go()
        self.gone()

    def told_to_go(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def gone(self) -> None:
        self._ended()
        assert self.has_told("closed"), f"{self} did not leave cleanly:\n{self.complaints}"

    def discard(self) -> None:
        if self.runs:
            self._process.kill()
        self._ended()

    def _ended(self) -> None:
        self._process.wait(GONE_WITHIN_SECONDS)
        for listener in self._listeners:
            listener.join(GONE_WITHIN_SECONDS)

    def _note(self, what: str) -> None:
        self.told.append(Told(what, time.monotonic()))

    def _hear(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("}\n"):  # Who is killed may be cut off within a line.
                    self.told.append(_told(json.loads(line)))

    def _hear_complaints(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self.complaints += line


def _told(line: dict[str, Any]) -> Told:
    partitions = line.get("partitions", [line["partition"]] if "partition" in line else [])
    offsets = tuple((int(partition), int(offset)) for partition, offset in line.get("offsets", {}).items())
    return Told(
        line["what"],
        line["at"],
        tuple(partitions),
        line.get("first", -1),
        line.get("last", -1),
        offsets,
        line.get("why", ""),
    )
