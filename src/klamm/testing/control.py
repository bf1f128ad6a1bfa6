"""The line between a test and one of its node processes: what the node is to be, and from then on how its links are.

Lines of JSON go to the node, which answers each with its number when it has taken effect. The line is the node's
standard input. When it breaks, the test is no more, and the node ends at once.
"""

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from klamm.runtime.loop import READABLE, Loop
from klamm.testing.links import Address, Link, LinkedDialer

STANDARD_INPUT = 0
SECONDS = 10.0


class NodeLine:
    """The test's end."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._ours.settimeout(SECONDS)
        self._said = 0
        self._heard = ""

    def begin(self, cluster_id: str, properties: Mapping[str, str], links: Mapping[Address, Link]) -> None:
        """The node's process is started and has its end."""
        self.theirs.close()
        self._say({"cluster_id": cluster_id, "properties": dict(properties), "links": _listed(links)})

    def tell(self, links: Mapping[Address, Link]) -> None:
        self._said += 1
        self._say({"number": self._said, "links": _listed(links)})

    def wait_heard(self) -> None:
        """Until the node has done what it was told last. OSError if it does not, or is no more."""
        while str(self._said) not in self._heard.split("\n")[:-1]:
            more = self._ours.recv(4096).decode()
            if not more:
                raise ConnectionResetError("the node has ended")
            self._heard += more

    def close(self) -> None:
        self._ours.close()

    def _say(self, document: object) -> None:
        self._ours.sendall(json.dumps(document).encode() + b"\n")


class Beginning:
    """The node's end, until it runs: the first line says what it is to be."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=STANDARD_INPUT)
        self._received = b""
        while b"\n" not in self._received:
            more = self._socket.recv(1 << 16)
            if not more:
                raise SystemExit("klamm.testing.node is started by the fixtures of klamm.testing, by nobody else")
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        document = json.loads(line)
        self.cluster_id: str = document["cluster_id"]
        self.properties: dict[str, str] = document["properties"]
        self.links = _links(document["links"])

    def listen(self, loop: Loop, dialer: LinkedDialer) -> None:
        """From now on, beside everything else the loop does."""
        self._socket.setblocking(False)
        loop.watch(self._socket.fileno(), READABLE, lambda events: self._read(dialer), first=True)

    def _read(self, dialer: LinkedDialer) -> None:
        try:
            more = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            os._exit(1)
        *lines, self._received = (self._received + more).split(b"\n")
        for line in lines:
            document = json.loads(line)
            dialer.set_links(_links(document["links"]))
            self._socket.send(b"%d\n" % document["number"])


def _listed(links: Mapping[Address, Link]) -> list[Any]:
    return [[*address, *link] for address, link in links.items()]


def _links(listed: list[Any]) -> dict[Address, Link]:
    return {(host, port): Link(is_cut, delay_ms) for host, port, is_cut, delay_ms in listed}
