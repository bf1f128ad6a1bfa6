"""`python -m klamm.testing.guardian DIRECTORY PID BIRTH`: waits until a test process has ended, and tidies up after it.

It ends when something comes on its standard input, or that ends (the test process has tidied up itself), or when that
process is no more, whatever holds the other end of the pipe then. Node processes are known by number and birth: nobody
else's is ever signalled.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
from pathlib import Path

from klamm.local.problems import LocalError
from klamm.local.processes import Process, signal_to, wait_ended
from klamm.local.record import read_record

STANDARD_INPUT = 0
KILL_SECONDS = 5.0


def main(directory: Path, owner: Process) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _wait_alone(owner)
    tidy_up(directory)


def tidy_up(directory: Path) -> None:
    """End all nodes of the clusters in this directory, and remove it."""
    processes = [process for cluster in directory.glob("cluster-*") for process in _processes(cluster)]
    for process in processes:
        signal_to(process, signal.SIGKILL)
    for process in processes:
        wait_ended(process, KILL_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)


def _wait_alone(owner: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(owner.pid)
        # If the number is another's by now, the owner has ended; and so it has if it ended just now.
        while not wait_ended(owner, 0.0):
            ready, _, _ = select.select([STANDARD_INPUT, descriptor], [], [])
            if STANDARD_INPUT in ready:
                return


def _processes(cluster: Path) -> list[Process]:
    with contextlib.suppress(LocalError):
        record = read_record(cluster)
        return [] if record is None else [node.process for node in record.nodes if node.process is not None]
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]), Process(int(sys.argv[2]), sys.argv[3]))
