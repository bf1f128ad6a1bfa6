"""Asking one broker, and waiting for its answer: what the command line needs to know that no client library tells.

A library hides which broker answered and which ones are fenced. This is one connection, one request at a time, in the
versions that we speak ourselves.
"""

import socket
import time
from struct import Struct
from typing import Any, NamedTuple

from klamm.codec.compiler import decode
from klamm.codec.primitives import Malformed
from klamm.escaping import one_line
from klamm.wire.apis import API_BY_KEY, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header

METADATA, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 3, 55, 60
ELEMENTS = 4_000_000
"""Array elements in one answer: the metadata of some hundred thousand partitions."""

_size = Struct(">i")


class NoAnswer(Exception):  # noqa: N818
    """Nobody there, or nobody who answers what we asked."""


class NobodyHere(NoAnswer):
    """Nobody listens at any of the addresses, and all of them are on this machine: there is no cluster running."""


class Address(NamedTuple):
    host: str
    port: int

    @property
    def is_here(self) -> bool:
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Conversation:
    """`with Conversation(address, 2.0) as broker: broker.ask(METADATA, 12, MetadataRequest(topics=None))`"""

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self._deadline = time.monotonic() + timeout_seconds
        self._asked = 0
        try:
            self._socket = socket.create_connection(address, timeout_seconds)
        except OSError as error:
            raise NoAnswer(f"{address}: {error.strerror or error}") from error
        except ValueError as error:
            # A broker may say that another one has a name that no host can have.
            raise NoAnswer(f"{one_line(str(address))}: that is not the address of a host") from error
        self._address = address

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def be_patient_for(self, timeout_seconds: float) -> None:
        """A new deadline, for who keeps the connection and comes back to it."""
        self._deadline = time.monotonic() + timeout_seconds

    def ask(self, api_key: int, version: int, request: object) -> Any:
        api = API_BY_KEY[api_key]
        self._asked += 1
        try:
            self._patience()
            self._socket.sendall(b"".join(map(bytes, encoded_request(api, version, self._asked, "klamm", request))))
            frame = self._frame()
            correlation_id, position = read_response_header(api, version, frame)
            if correlation_id != self._asked:
                raise Malformed(f"answer {correlation_id} to request {self._asked}")
            return decode(response_type(api_key), version, frame[position:], budget=ELEMENTS)
        except (OSError, Malformed) as error:
            raise NoAnswer(f"{self._address}: {api.name}: {error}") from error

    def _frame(self) -> memoryview:
        (size,) = _size.unpack(self._exactly(4))
        return memoryview(self._exactly(size))

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            self._patience()
            more = self._socket.recv(min(count - len(received), 1 << 20))
            if not more:
                raise ConnectionResetError("the connection was closed")
            received += more
        return bytes(received)

    def _patience(self) -> None:
        """One deadline for all that is asked, however slowly the answers trickle."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._socket.settimeout(left)


def takes_connections(address: Address, timeout_seconds: float) -> bool:
    try:
        socket.create_connection(address, timeout_seconds).close()
    except OSError:
        return False
    return True
