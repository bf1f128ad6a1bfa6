"""Dialling other nodes: a connection comes about without anybody waiting for it.

Addresses that are numbers connect at once; names are looked up in a thread, because that may take seconds. An attempt
can be called off at any time before it has succeeded.
"""

import errno
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from klamm.runtime.loop import WRITABLE, Loop

Address: TypeAlias = tuple[int, tuple[str, int]]
"""Family, and what `connect` takes."""


class Dialing(Protocol):
    """Who hears how an attempt ended."""

    def dialed(self, connection: int, sock: socket.socket) -> None: ...
    def refused(self, connection: int, nobody_listens: bool) -> None: ...


class Dialer:
    def __init__(self, loop: Loop, listener: Dialing) -> None:
        self._loop = loop
        self._listener = listener
        self._attempts: dict[int, socket.socket | None] = {}
        """Under way: its socket, or None while the name is being looked up."""

    def dial(self, connection: int, host: str, port: int) -> None:
        self._attempts[connection] = None
        try:
            self._connect(connection, _numeric(host, port))
        except socket.gaierror:
            threading.Thread(target=self._look_up, args=(connection, host, port), daemon=True).start()

    def call_off(self, connection: int) -> bool:
        """Whether there was an attempt to call off."""
        if connection not in self._attempts:
            return False
        sock = self._attempts.pop(connection)
        if sock is not None:
            self._loop.forget(sock.fileno())
            sock.close()
        return True

    def close(self) -> None:
        for connection in list(self._attempts):
            self.call_off(connection)

    def _look_up(self, connection: int, host: str, port: int) -> None:
        """In a thread of its own."""
        call: Callable[[], None]
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            call = partial(self._connect, connection, (found[0][0], found[0][4]))  # type: ignore[arg-type]
        except OSError:
            call = partial(self._failed, connection, None)
        self._loop.call_soon(call)

    def _connect(self, connection: int, address: Address) -> None:
        if connection not in self._attempts:
            return
        sock = socket.socket(address[0], socket.SOCK_STREAM)
        sock.setblocking(False)
        problem = sock.connect_ex(address[1])
        if problem not in (0, errno.EINPROGRESS):
            sock.close()
            # Not from within the step that dialled.
            self._loop.call_soon(partial(self._failed, connection, problem))
            return
        self._attempts[connection] = sock
        self._loop.watch(sock.fileno(), WRITABLE, lambda events: self._settle(connection, sock))

    def _settle(self, connection: int, sock: socket.socket) -> None:
        del self._attempts[connection]
        self._loop.forget(sock.fileno())
        problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            sock.close()
            self._listener.refused(connection, problem == errno.ECONNREFUSED)
        else:
            self._listener.dialed(connection, sock)

    def _failed(self, connection: int, problem: int | None) -> None:
        if connection in self._attempts:
            del self._attempts[connection]
            self._listener.refused(connection, problem == errno.ECONNREFUSED)


def _numeric(host: str, port: int) -> Address:
    """gaierror if the host is a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return found[0][0], found[0][4]  # type: ignore[return-value]
