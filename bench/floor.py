"""The floor: what receiving, storing and sending the same bytes costs a Python process that does nothing else.

Three loops, each in a process of its own, fed or read over loopback by this one: `store` receives into one buffer of
1 MiB and writes to a file; `answer` does the same with requests of the size Kafka's producer sends, five in flight,
and answers each with a few bytes, as any broker must; `serve` sends a file with sendfile. The processor seconds are
those of the loop (user and system), divided by the bytes.

    python -m bench.floor store|answer|serve FILE
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bench.systems import ROOT
from bench.worker import python_module

CHUNK = 1024 * 1024
REQUEST = 97_000  # what ProducerPerformance sends with defaults to six partitions: six batches of 16 KiB
ANSWER = 100
IN_FLIGHT = 5

Feed = Callable[[socket.socket, int], int]


def measured(directory: Path, size: int) -> dict[str, float]:
    """Seconds of processor time per GB for the three loops."""
    path = directory / "floor.bin"
    directory.mkdir(parents=True, exist_ok=True)
    try:
        figures = {}
        for loop, feed in (("store", _feed_stream), ("answer", _feed_requests), ("serve", _drain)):
            os.sync()
            figures[loop] = _run(loop, path, size, feed)
        return figures
    finally:
        path.unlink(missing_ok=True)


def _run(loop: str, path: Path, size: int, feed: Feed) -> float:
    worker = subprocess.Popen(python_module("floor", loop, path), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert worker.stdout is not None
    try:
        with socket.create_connection(("127.0.0.1", int(worker.stdout.readline()))) as connection:
            moved = feed(connection, size)
        seconds = float(worker.stdout.readline())
        worker.wait(60)
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()
    return seconds / (moved / 1e9)


def _feed_stream(connection: socket.socket, size: int) -> int:
    chunk = bytes(CHUNK)
    count = max(1, size // CHUNK)
    for _ in range(count):
        connection.sendall(chunk)
    return count * CHUNK


def _feed_requests(connection: socket.socket, size: int) -> int:
    request = bytes(REQUEST)
    count = max(1, size // REQUEST)
    buffer = bytearray(ANSWER)
    for index in range(count):
        connection.sendall(request)
        if index >= IN_FLIGHT:
            connection.recv_into(buffer, ANSWER, socket.MSG_WAITALL)
    for _ in range(min(count, IN_FLIGHT)):
        connection.recv_into(buffer, ANSWER, socket.MSG_WAITALL)
    return count * REQUEST


def _drain(connection: socket.socket, size: int) -> int:
    buffer = bytearray(CHUNK)
    moved = 0
    while count := connection.recv_into(buffer):
        moved += count
    return moved


def store(connection: socket.socket, path: Path) -> None:
    buffer = memoryview(bytearray(CHUNK))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while count := connection.recv_into(buffer):
        os.write(file, buffer[:count])


def answer(connection: socket.socket, path: Path) -> None:
    buffer = memoryview(bytearray(CHUNK))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    reply = bytes(ANSWER)
    received = answered = 0
    while count := connection.recv_into(buffer):
        os.write(file, buffer[:count])
        received += count
        whole = received // REQUEST
        if whole > answered:
            connection.sendall(reply * (whole - answered))
            answered = whole


def serve(connection: socket.socket, path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    position = 0
    while count := os.sendfile(connection.fileno(), file, position, CHUNK):
        position += count


def main(loop: str, path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # As Klamm does on loopback: the system's default may be one that paces, and then the floor would be too high.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    before = os.times()
    with connection:
        {"store": store, "answer": answer, "serve": serve}[loop](connection, Path(path))
    after = os.times()
    print(after.user + after.system - before.user - before.system, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
