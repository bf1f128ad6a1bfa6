"""One connection to a broker and nothing in between: requests of any version go out, frames come back.

For what no client library would do: old versions, several requests at once, bytes that are no request at all.
"""

import contextlib
import socket
import struct
from typing import Any, NamedTuple

from klamm.codec.compiler import decode
from klamm.wire.apis import API_BY_KEY, Api, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header

API_BY_NAME = {api.name: api for api in API_BY_KEY.values()}


class Waiting(NamedTuple):
    """A request that has been sent: what its answer is to be read as."""

    api: Api
    version: int
    correlation_id: int


class Raw:
    """`Raw(port).call("Metadata", 12, MetadataRequest(topics=None))` gives a `MetadataResponse`."""

    def __init__(self, port: int, client_id: str | None = "raw", timeout_seconds: float = 20.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, api: str | int, version: int, request: Any) -> Any:
        return self.receive(self.send(api, version, request))

    def send(self, api: str | int, version: int, request: Any) -> Waiting:
        """Sends without waiting; answers come in the order of the requests."""
        found = API_BY_NAME[api] if isinstance(api, str) else API_BY_KEY[api]
        self._correlation_id += 1
        pieces = encoded_request(found, version, self._correlation_id, self._client_id, request)
        self.send_bytes(b"".join(bytes(piece) for piece in pieces))
        return Waiting(found, version, self._correlation_id)

    def receive(self, waiting: Waiting) -> Any:
        """The next answer, which has to be the one to this request, with no byte too many."""
        frame = self.receive_frame()
        correlation_id, position = read_response_header(waiting.api, waiting.version, frame)
        assert correlation_id == waiting.correlation_id, "answers come in the order of the requests"
        return decode(response_type(waiting.api.key), waiting.version, frame[position:], exact=True)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send_frame(self, content: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(content)) + content)

    def receive_frame(self) -> bytes:
        """The next frame without its size. Closed by the broker: ConnectionError."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def hears_nothing_for(self, seconds: float) -> bool:
        """Whether not a single byte arrives in that time."""
        before = self._socket.gettimeout()
        self._socket.settimeout(seconds)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self._socket.settimeout(before)
        return False

    def is_closed_by_broker(self) -> bool:
        """Waits for the end of the connection; False if bytes come instead, or nothing at all."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            more = self._socket.recv(count - len(received))
            if not more:
                raise ConnectionError("the broker closed the connection")
            received += more
        return bytes(received)
