"""A client without manners: requests to spoil, and a connection that says whatever it is told.

Nothing here waits longer than `PATIENCE_SECONDS`, and running out of patience is a failure.
"""

import socket
import struct
from typing import Any

from klamm.wire.apis import API_BY_KEY, Api
from klamm.wire.frames import encoded_request
from tests.harness.raw import Raw as Polite
from tests.harness.raw import Waiting

PATIENCE_SECONDS = 10.0
CLIENT_ID = "hostile"


def api_called(name: str) -> Api:
    return next(api for api in API_BY_KEY.values() if api.name == name)


def api_of(request: object) -> Api:
    return api_called(type(request).__name__.removesuffix("Request"))


def body_of(request: Any, version: int, correlation_id: int = 1, client_id: str | None = CLIENT_ID) -> bytes:
    """A request with its header, without its size."""
    return b"".join(map(bytes, encoded_request(api_of(request), version, correlation_id, client_id, request)))[4:]


def framed(body: bytes, size: int | None = None) -> bytes:
    """With its size before it; or with another size."""
    return struct.pack(">i", len(body) if size is None else size) + body


def header(key: int, version: int, correlation_id: int = 1, client_id: bytes | None = b"hostile") -> bytes:
    """The beginning of a request that `klamm.wire` might refuse to write. Flexible versions add their tags."""
    length = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, correlation_id, length) + (client_id or b"")


class Raw(Polite):
    """One connection that also says what is not a request, and may be hard of hearing (`receive_buffer`)."""

    def __init__(self, port: int, *, patience: float = PATIENCE_SECONDS, receive_buffer: int | None = None) -> None:
        super().__init__(port, CLIENT_ID, patience)
        if receive_buffer is not None:
            # Anew: how much may be sent to us is told with the first packet.
            self._socket.close()
            self._socket = socket.socket()
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self._socket.settimeout(patience)
            self._socket.connect(("127.0.0.1", port))

    def __enter__(self) -> "Raw":
        return self

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Sends a request and waits for its response."""
        version = api_of(request).max_version if version is None else version
        self.post(request, version)
        return self.answer_to(request, version)

    def post(self, request: Any, version: int) -> int:
        """Sends a request and waits for nothing; its correlation id."""
        return self.send(api_of(request).key, version, request).correlation_id

    def answer_to(self, request: Any, version: int, correlation_id: int | None = None) -> Any:
        """The response to the oldest request that has none yet, which was this one."""
        api = api_of(request)
        waiting = Waiting(api, version, self._correlation_id if correlation_id is None else correlation_id)
        try:
            return self.receive(waiting)
        except ConnectionError as error:
            raise AssertionError(f"closed instead of an answer to {api.name} version {version}") from error

    def frame(self) -> bytes | None:
        """The next frame without its size, or None if the connection was closed before it."""
        try:
            return self.receive_frame()
        except ConnectionError:
            return None
