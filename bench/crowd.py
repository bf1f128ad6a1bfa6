"""Several clients at once, looked at from outside between two moments at which all of them work.

A client that counts its own records up to its own end says little when three run together: the last one has the
cluster to itself. So nobody is asked. When every client has said its first line, all warm up for a while; then the
harness notes what the cluster has stored and spent, waits, notes it again, and ends the clients. What counts is what
arrived on the disks of all replicas in between.
"""

import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO

from bench.systems import ROOT, Watchable
from bench.worker import ClientError


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a cluster stored and spent between the two moments."""

    seconds: float
    stored_bytes: int
    cpu_seconds: float


def stretch(commands: list[list[str]], system: Watchable, topic: str, warmup: float, seconds: float) -> Stretch:
    """Run all these clients, measure the middle, and end them."""
    clients: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryFile() as errors:
        try:
            for command in commands:
                clients.append(_spawned(command, errors))
            for client in clients:
                assert client.stdout is not None
                client.stdout.readline()
            time.sleep(warmup)
            before = _looked_at(system, topic)
            time.sleep(seconds)
            after = _looked_at(system, topic)
            _check_all_work(clients, errors)
        finally:
            for client in clients:
                client.kill()
                client.communicate()
    return Stretch(after[0] - before[0], after[1] - before[1], after[2] - before[2])


def _spawned(command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT)


def _looked_at(system: Watchable, topic: str) -> tuple[float, int, float]:
    return time.perf_counter(), system.stored_bytes(topic), system.cpu_seconds()


def _check_all_work(clients: list[subprocess.Popen[bytes]], errors: IO[bytes]) -> None:
    """A client that failed has ended, or has complained: ProducerPerformance goes on after records it lost."""
    errors.seek(0)
    complaints = errors.read().decode(errors="replace")
    if complaints or any(client.poll() is not None for client in clients):
        raise ClientError(complaints[-2000:] or "a client ended too early")
