"""Connections, over real sockets."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from klamm.facts import unheard
from klamm.runtime.loop import Loop
from klamm.runtime.outbox import TURN_BYTES, Outbox
from klamm.runtime.server import Limits, Server


class Echo:
    """Answers each frame with itself."""

    def __init__(self) -> None:
        self.server: Server | None = None
        self.opened_peers: list[str] = []

    def opened(self, connection: int, peer: str) -> None:
        self.opened_peers.append(peer)

    def received(self, connection: int, frames: Sequence[memoryview]) -> int:
        assert self.server is not None
        for frame in frames:
            self.server.send(connection, [len(frame).to_bytes(4, "big") + bytes(frame)])
        return 0

    def drained(self, connection: int) -> None: ...
    def closed(self, connection: int) -> None: ...


@contextmanager
def serving(host: str) -> Iterator[tuple[Server, int]]:
    loop, echo = Loop(), Echo()
    server = echo.server = Server(loop, echo, Limits(), unheard)
    port = server.bind(host, 0)
    server.take_connections()
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield server, port
    finally:
        loop.stop()
        thread.join()
        server.close()


def test_one_reader_does_not_keep_the_others_waiting_however_fast_it_reads() -> None:
    """A reply of many megabytes goes out a turn at a time."""

    class Endless:
        """A socket whose other side takes everything at once."""

        taken = 0

        def sendmsg(self, buffers: list[memoryview], ancillary: object, flags: int) -> int:
            sent = sum(map(len, buffers))
            self.taken += sent
            return sent

    outbox, sock = Outbox(), Endless()
    outbox.add([bytes(1 << 20)] * 10)
    outbox.send(sock)  # type: ignore[arg-type]
    assert sock.taken == TURN_BYTES
    assert outbox.size == (10 << 20) - TURN_BYTES


@pytest.mark.parametrize(("host", "client"), [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2"), ("::1", "::1")])
def test_connections_within_the_machine_are_not_paced(host: str, client: str) -> None:
    """Whatever the system's default: with BBR a byte to a reader on the same machine costs twice the processor time."""
    with serving(host) as (server, port), socket.create_connection((host, port), 5, (client, 0)) as connection:
        frame = b"\0\0\0\x10sixteen bytes.._"
        connection.sendall(frame)
        assert connection.recv(100) == frame
        (accepted,) = server._connections.values()
        name = accepted.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert name.rstrip(b"\0") == b"reno"
