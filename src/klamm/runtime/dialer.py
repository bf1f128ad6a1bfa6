"""Dialling other nodes: a connection comes about without anybody waiting for it.

Addresses that are numbers connect at once; names are looked up in a thread, because that may take seconds, and all
addresses of a name are tried, one after the other. An attempt can be called off at any time before it has succeeded.
"""

import errno
import socket
import threading
from collections.abc import Callable, Sequence
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
            self._try(connection, _addresses(host, port, socket.AI_NUMERICHOST))
        except (socket.gaierror, UnicodeError):
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
        try:
            addresses = _addresses(host, port)
        except (OSError, UnicodeError):
            addresses = []
        self._loop.call_soon(partial(self._try, connection, addresses))

    def _try(self, connection: int, addresses: list[Address], refusals: Sequence[int] = ()) -> None:
        """The first of these addresses, then the others; `refusals` is why those before did not work."""
        if connection not in self._attempts:
            return
        if not addresses:
            # Not from within the step that dialled.
            self._loop.call_soon(partial(self._failed, connection, refusals))
            return
        (family, address), *others = addresses
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            # Out of descriptors, most likely. That passes, and says nothing of the other side.
            self._try(connection, [], [*refusals, error.errno or errno.EMFILE])
            return
        sock.setblocking(False)
        problem = sock.connect_ex(address)
        if problem not in (0, errno.EINPROGRESS):
            sock.close()
            self._try(connection, others, [*refusals, problem])
            return

        def settle(events: int) -> None:
            self._loop.forget(sock.fileno())
            problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem:
                sock.close()
                self._attempts[connection] = None
                self._try(connection, others, [*refusals, problem])
            else:
                del self._attempts[connection]
                self._listener.dialed(connection, sock)

        self._attempts[connection] = sock
        self._loop.watch(sock.fileno(), WRITABLE, settle)

    def _failed(self, connection: int, refusals: Sequence[int]) -> None:
        if connection in self._attempts:
            del self._attempts[connection]
            nobody_listens = bool(refusals) and set(refusals) == {errno.ECONNREFUSED}
            self._listener.refused(connection, nobody_listens)


MakeDialer: TypeAlias = Callable[[Loop, Dialing], Dialer]
"""Whose connections come about in another way: over links that tests can cut."""


def _addresses(host: str, port: int, flags: int = 0) -> list[Address]:
    """gaierror if the host is a name where only numbers are wanted, or one that nobody knows."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]  # type: ignore[misc]
