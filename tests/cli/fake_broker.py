"""A broker of a few lines: it answers on a loopback socket what a test has written down for each API.

For what no real broker does on demand: a coordinator that moves at the right moment, or says nothing at all.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from klamm.codec.compiler import decode
from klamm.local.asking import Address
from klamm.wire.apis import API_BY_KEY, request_type
from klamm.wire.frames import encoded_response
from klamm.wire.headers import read_request_header

_size = Struct(">i")

Answers = Mapping[int, Callable[[Any], Any]]
"""For each API's key, its response to a request. None closes the connection instead."""


class FakeBroker:
    """`with FakeBroker() as broker: broker.answers = {FIND_COORDINATOR: lambda request: …}`"""

    def __init__(self, port: int = 0) -> None:
        self.answers: Answers = {}
        self.asked: list[int] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def address(self) -> Address:
        return Address(*self._listener.getsockname()[:2])

    def __enter__(self) -> "FakeBroker":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # A listener that is only closed would leave its thread waiting in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(*_size.unpack(size))
                header, position = read_request_header(frame)
                self.asked.append(header.api_key)
                request = decode(request_type(header.api_key), header.api_version, frame[position:])
                response = self.answers[header.api_key](request)
                if response is None:
                    return
                api = API_BY_KEY[header.api_key]
                pieces = encoded_response(api, header.api_version, header.correlation_id, response)
                connection.sendall(b"".join(map(bytes, pieces)))
