"""A node without sockets or a clock: frames go in, and what comes out is read as a client would read it.

Nothing here waits. A request that has to wait is answered when the clock, which is ours, reaches what the node asked
to be woken for. Flushes are said to be done at once.
"""

import struct
from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Any

from klamm.codec.compiler import decode_from
from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.ids import Now
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.effects import Close, Effect, Flush, Send, Wake, Yield
from klamm.node.events import Closed, Event, Flushed, Opened, Received, Woke, Yielded
from klamm.runtime.files import RealFiles, RealRegion
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, response_type
from klamm.wire.headers import read_response_header
from tests.hostile.raw import body_of

NOON_MS = 1_800_000_000_000
MOST_WAKES = 3


class Solo:
    def __init__(self, files: RealFiles, seed: int) -> None:
        overrides = {"node.id": "0", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": str(files.root)}
        self.facts: list[Fact] = []
        self.node = assembled(BrokerConfig.from_properties((), overrides), files, Random(seed), self.facts.append)
        self._monotonic_ms = 0.0
        self._wake_ms: float | None = None
        self._connections = 0
        self._sent: dict[int, bytearray] = {}
        self._closed: set[int] = set()
        self._perform(self.node.start(Endpoint("PLAINTEXT", "127.0.0.1", 9092), self._now()))

    def ask(self, body: bytes) -> bytes | None:
        """Send one frame on a connection of its own: the response, b"" if there is none in time, None if closed."""
        connection = self.connect()
        self.send(connection, body)
        for _ in range(MOST_WAKES):
            if self._sent[connection] or connection in self._closed or self._wake_ms is None:
                break
            self.pass_time(self._wake_ms - self._monotonic_ms)
        response = bytes(self._sent[connection])
        is_closed = connection in self._closed
        self.hang_up(connection)
        return None if is_closed and not response else response

    def connect(self) -> int:
        self._connections += 1
        self._sent[self._connections] = bytearray()
        self._step(Opened(self._connections, "somebody"))
        return self._connections

    def send(self, connection: int, *bodies: bytes) -> None:
        # A producer's bytes are stamped where they lie.
        self._step(Received(connection, [memoryview(bytearray(body)) for body in bodies]))

    def sent_to(self, connection: int) -> bytes:
        return bytes(self._sent[connection])

    def hang_up(self, connection: int) -> None:
        self._step(Closed(connection))
        del self._sent[connection]
        self._closed.discard(connection)

    def pass_time(self, duration_ms: float) -> None:
        self._monotonic_ms += max(0.0, duration_ms)
        if self._wake_ms is not None and self._wake_ms <= self._monotonic_ms:
            self._wake_ms = None
            self._step(Woke())

    def stop(self) -> None:
        self.node.stop()

    def _step(self, event: Event) -> None:
        self._perform(self.node.step(event, self._now()))

    def _perform(self, effects: Iterable[Effect]) -> None:
        left = deque(effects)
        while left:
            effect = left.popleft()
            if isinstance(effect, Send):
                for piece in effect.pieces:
                    self._sent[effect.connection] += bytes(piece)  # type: ignore[call-overload]
                    if isinstance(piece, RealRegion):
                        piece.release()
            elif isinstance(effect, Close):
                self._closed.add(effect.connection)
            elif isinstance(effect, Flush):
                left += self.node.step(Flushed(effect.token), self._now())
            elif isinstance(effect, Yield):
                left += self.node.step(Yielded(), self._now())
            elif isinstance(effect, Wake):
                self._wake_ms = effect.at_ms

    def _now(self) -> Now:
        self._monotonic_ms += 0.01
        return Now(self._monotonic_ms, NOON_MS + int(self._monotonic_ms))


def check_response(request: bytes, response: bytes) -> object:
    """The response is one frame, of this request, and its own schema can read every byte of it."""
    (size,) = struct.unpack_from(">i", response)
    assert size == len(response) - 4, "one frame with its right size"
    key, version, correlation_id = struct.unpack_from(">hhi", request)
    api = API_BY_KEY[key]
    if key == API_VERSIONS and not api.serves(version):
        version = 0
    frame = response[4:]
    got, position = read_response_header(api, version, frame)
    assert got == correlation_id
    # A response may hold more than a request: it is the node's own.
    message, position = decode_from(response_type(key), version, frame, position, budget=2**31)
    assert position == len(frame), "bytes follow the response"
    return message


def asked(solo: Solo, request: object, version: int) -> Any:
    """The answer to a right request, which has to have one."""
    body = body_of(request, version)
    response = solo.ask(body)
    assert response, f"no answer to {type(request).__name__}"
    return check_response(body, response)
