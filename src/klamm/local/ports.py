"""Ports for nodes that are about to start, held until they have taken them.

A held port is a socket that is bound and does not listen. Whoever else binds it with SO_REUSEADDR, as our nodes do,
may listen there; the system gives it to nobody else meanwhile; and who dials it is refused, as by a node that is down.
"""

import errno
import socket
from collections.abc import Sequence

from klamm.local.problems import LocalError, PortsTaken

MOST = 65_535


class HeldPorts:
    """Ports of one host that nobody else can be given. A context manager: left, they are let go."""

    def __init__(self, host: str, wanted: Sequence[int]) -> None:
        """These ports; the system chooses where one is 0."""
        self._sockets: list[socket.socket] = []
        try:
            self._hold(host, wanted)
        except LocalError:
            self.let_go()
            raise
        self.ports = [int(sock.getsockname()[1]) for sock in self._sockets]

    @classmethod
    def preferred(cls, host: str, wanted: Sequence[int], second: Sequence[int]) -> "HeldPorts":
        """These ports; in the place of those that are taken their second choice, and if that is taken too, any."""
        anything = [0] * len(wanted)
        for others in (second, anything):
            try:
                return cls(host, wanted)
            except PortsTaken as problem:
                taken = problem.ports
            wanted = [other if port in taken else port for port, other in zip(wanted, others, strict=True)]
        return cls(host, wanted)

    def let_go(self) -> None:
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()

    def __enter__(self) -> "HeldPorts":
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()

    def _hold(self, host: str, wanted: Sequence[int]) -> None:
        taken = []
        for port in wanted:
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise LocalError(f"cannot listen on {host}:{port}: {error.strerror}") from error
                taken.append(port)
        if taken:
            listed = ", ".join(f"{host}:{port}" for port in taken)
            raise PortsTaken(taken, f"somebody else listens on {listed}; choose other ports with --port")


def ports_from(first: int, count: int) -> list[int]:
    """So many ports from this one upwards, or as many zeros."""
    if first == 0:
        return [0] * count
    if not 0 < first <= MOST - count + 1:
        raise LocalError(f"ports {first} to {first + count - 1} are not all between 1 and {MOST}")
    return list(range(first, first + count))
