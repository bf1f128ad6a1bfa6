"""One process on this machine: started on its own, known for sure, signalled, waited for.

A number is not a process: when one has ended, the system gives its number to another. So we remember with the number
when the process was born, and signal through a descriptor of the process itself, checked after it was opened. A signal
of ours reaches the process that we started, or nobody.
"""

import os
import select
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["running", "paused", "dead"]

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ENDED, STOPPED = "ZXx", "T"


class Process(NamedTuple):
    """Which process: its number, and when it was born (which boot of the machine, which tick of it)."""

    pid: int
    birth: str


def started(command: Sequence[str], log: Path, reads: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    """Start a process that outlives us: in a session of its own, nothing to read unless it is given a descriptor, all
    it says appended to its log."""
    with log.open("ab") as output:
        return subprocess.Popen(command, stdin=reads, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)


def process_of(pid: int) -> Process:
    """The process that has this number now, which has to be ours: a child that was not waited for yet."""
    found = _looked_up(pid)
    assert found is not None, f"{pid} is not there; children keep their number until they are waited for"
    return Process(pid, found[1])


def state_of(process: Process) -> State:
    found = _looked_up(process.pid)
    if found is None or found[1] != process.birth or found[0] in ENDED:
        return "dead"
    return "paused" if found[0] in STOPPED else "running"


def signal_to(process: Process, number: signal.Signals) -> bool:
    """Send a signal to this very process; whether it was there to get it."""
    with _descriptor(process) as descriptor:
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        return True


def wait_ended(process: Process, seconds: float) -> bool:
    """Until it has ended, at most so long; whether it has."""
    with Watch([process]) as watch:
        return bool(watch.wait_ended(seconds))


class Watch:
    """Several processes, watched for their end."""

    def __init__(self, processes: Iterable[Process]) -> None:
        self._gone: list[Process] = []
        self._watched: dict[int, Process] = {}
        # Not select(): it knows no descriptor above 1023, and a test's own process may have more open.
        self._poll = select.poll()
        for process in processes:
            descriptor = _opened(process)
            if descriptor is None:
                self._gone.append(process)
            else:
                self._watched[descriptor] = process
                self._poll.register(descriptor, select.POLLIN)

    def wait_ended(self, seconds: float) -> list[Process]:
        """Until one of them has ended, at most so long. All that have; they are told again every time."""
        patience = 0.0 if self._gone else max(0.0, seconds)
        ended = {descriptor for descriptor, _ in self._poll.poll(patience * 1000)}
        return self._gone + [process for descriptor, process in self._watched.items() if descriptor in ended]

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._watched:
            os.close(descriptor)


@contextmanager
def _descriptor(process: Process) -> Iterator[int | None]:
    descriptor = _opened(process)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(process: Process) -> int | None:
    """A descriptor of this very process, or None if it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    # Opened first and looked at second: if the number was given to another in between, the births differ.
    found = _looked_up(process.pid)
    if found is None or found[1] != process.birth:
        os.close(descriptor)
        return None
    return descriptor


def _looked_up(pid: int) -> tuple[str, str] | None:
    """What the system says of a number: the state's letter and the birth, or None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in brackets and may hold anything; the state is field 3, the tick of birth field 22.
    fields = text.rpartition(")")[2].split()
    return fields[0], f"{_boot_id()}:{fields[19]}"


@cache
def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()
