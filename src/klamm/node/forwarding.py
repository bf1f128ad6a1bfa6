"""Admin requests that came to a broker which is not the controller: passed on, and answered as if it were.

The request travels as it came, in an Envelope, so the controller's answer fits the client's connection byte for byte.
As long as there is time it is tried again: with the next controller when the one asked is gone or no longer is one. The
answer waits until this broker's own metadata holds what was decided: who creates a topic here finds it here.
"""

from collections.abc import Callable

from klamm.broker.answer import Applied, Later
from klamm.broker.waiting import Waiter, Waiting
from klamm.errors import ErrorCode
from klamm.ids import Now
from klamm.node.peers import Peer, Peers, Purpose
from klamm.wire.apis import ENVELOPE
from klamm.wire.connection import Place, ServerConnection
from klamm.wire.forwarded import ForwardedResponse
from klamm.wire.messages.envelope import EnvelopeRequest

RETRY_MS = 30.0
GRACE_MS = 500.0
"""The controller knows as well how long the client waits, and says in the client's words when it was too long."""

ANONYMOUS = b"\0\0\x05User\x0aANONYMOUS\0\0"
"""Kafka's DefaultPrincipalData, version 0: type, name, and that it is not an authenticated token."""


class _Forwarded:
    __slots__ = ("connection", "deadline_ms", "due_ms", "place", "request")

    def __init__(
        self, request: EnvelopeRequest, connection: ServerConnection, place: Place, deadline_ms: float, due_ms: float
    ) -> None:
        self.request = request
        self.connection = connection
        self.place = place
        self.deadline_ms = deadline_ms
        self.due_ms = due_ms


class Forwarding:
    def __init__(
        self,
        peers: Peers,
        controller: Callable[[], Peer | None],
        waiting: Waiting,
        touch: Callable[[ServerConnection], None],
    ) -> None:
        self._peers = peers
        self._controller = controller
        self._waiting = waiting
        self._touch = touch
        self._open: list[_Forwarded] = []
        """Those that are with nobody at the moment."""

    def forward(
        self, frame: memoryview, connection: ServerConnection, place: Place, deadline_ms: float, now: Now
    ) -> None:
        host = connection.peer.rpartition(":")[0]
        request = EnvelopeRequest(
            request_data=bytes(frame), request_principal=ANONYMOUS, client_host_address=_packed(host)
        )
        connection.wait(place)
        self._try(_Forwarded(request, connection, place, deadline_ms, now.monotonic_ms), now)

    def controller_changed(self, now: Now) -> None:
        for forwarded in self._open:
            forwarded.due_ms = now.monotonic_ms

    def tick(self, now: Now) -> None:
        if self._open and min(each.due_ms for each in self._open) <= now.monotonic_ms:
            due, self._open = self._open, []
            for forwarded in due:
                if forwarded.due_ms <= now.monotonic_ms:
                    self._try(forwarded, now)
                else:
                    self._open.append(forwarded)

    def next_deadline_ms(self) -> float | None:
        return min((each.due_ms for each in self._open), default=None)

    def _try(self, forwarded: _Forwarded, now: Now) -> None:
        left_ms = forwarded.deadline_ms - now.monotonic_ms
        if left_ms <= 0:
            # Every API would say "too late" in another shape. A connection that ends says it in all of them.
            forwarded.connection.closing = True
            self._touch(forwarded.connection)
            return
        controller = self._controller()
        if controller is None:
            self._again(forwarded, now)
            return

        def then(answer: object, now: Now) -> None:
            if not isinstance(answer, ForwardedResponse) or answer.error_code == ErrorCode.NOT_CONTROLLER:
                self._again(forwarded, now)
            elif answer.response_data is None:
                forwarded.connection.closing = True
                self._touch(forwarded.connection)
            else:
                self._deliver(forwarded, answer.response_data, answer.metadata_offset)

        patience_ms = left_ms + GRACE_MS
        self._peers.ask(
            controller, Purpose.FORWARD, ENVELOPE, 0, forwarded.request, patience_ms, then, now, ForwardedResponse
        )

    def _again(self, forwarded: _Forwarded, now: Now) -> None:
        forwarded.due_ms = now.monotonic_ms + RETRY_MS
        self._open.append(forwarded)

    def _deliver(self, forwarded: _Forwarded, response: bytes, offset: int) -> None:
        pieces: list[object] = [len(response).to_bytes(4, "big") + bytes(response)]

        def deliver(now: Now, in_time: bool) -> None:
            forwarded.connection.ready(forwarded.place, pieces)
            self._touch(forwarded.connection)

        later = Later(Applied(offset), forwarded.deadline_ms, lambda now, in_time: None)
        self._waiting.add(Waiter(later, forwarded.connection.id, deliver), forwarded.deadline_ms)


def _packed(host: str) -> bytes:
    """An address as its four bytes, where it is one of four; else as text, which nobody but a log reads."""
    parts = host.split(".")
    if len(parts) == 4 and all(part.isdigit() and int(part) < 256 for part in parts):
        return bytes(map(int, parts))
    return host.encode()
