"""Is a connection what it claims? Ask at the address of the broker that it claims to speak for.

A request that counts only from a certain broker is held back, with all behind it on its connection, until that broker's
address has answered (`wire/claims.py`), or has not in time. The question goes out over a connection of its own, that is
kept: what comes later of the same broker is confirmed within a round trip.

What is asked of an address that somebody only advertises proves nothing about whoever is registered under that number:
that it answers nobody is no sign of death.
"""

from collections.abc import Callable
from dataclasses import dataclass

from klamm.broker.broker import Broker
from klamm.broker.speaker import Unconfirmed
from klamm.ids import BrokerId, Now
from klamm.node.peers import Peer, Peers, Purpose
from klamm.wire.apis import API_VERSIONS
from klamm.wire.claims import NO_TOKEN, QUESTION, TokenAnswer, claim_bytes
from klamm.wire.connection import ServerConnection
from klamm.wire.messages.api_versions import ApiVersionsRequest

API_VERSIONS_VERSION = 4
PATIENCE_MS = 1_500.0
MOST_OF_ONE = 64
"""Connections that are held back at once and claim to be one broker's: each broker has a few."""

MOST_UNKNOWN = 1_000
"""And of all brokers that are not registered here. Beyond either the one that has waited longest is refused."""


@dataclass(slots=True, eq=False)
class _Waiting:
    connection: ServerConnection
    deadline_ms: float
    until: Callable[[], bool]


class Confirmations:
    def __init__(self, broker: Broker, peers: Peers, touch: Callable[[ServerConnection], None]) -> None:
        self._broker = broker
        self._peers = peers
        self._touch = touch
        self._waiting: dict[int, _Waiting] = {}

    def wait(self, connection: ServerConnection, unconfirmed: Unconfirmed, now: Now) -> None:
        """Hold this connection back until it is known whether it is what it claims."""
        assert connection.id not in self._waiting
        connection.awaits_speaker = True
        waiting = _Waiting(connection, now.monotonic_ms + PATIENCE_MS, unconfirmed.until)
        broker_id = connection.speaker.broker_id
        if broker_id == self._broker.node_id:
            # (What this node says to itself does not come over a connection.) Refused when it is looked at next.
            waiting.deadline_ms = now.monotonic_ms
        else:
            self._make_room(broker_id)
            if unconfirmed.address is not None:
                self._ask(waiting, unconfirmed, now)
        self._waiting[connection.id] = waiting

    def look_again(self) -> None:
        """The metadata moved on, or somebody fetched it: perhaps that is what a connection waited for."""
        for waiting in list(self._waiting.values()):
            if waiting.until():
                self._let_go(waiting)

    def closed(self, connection: int) -> None:
        self._waiting.pop(connection, None)

    def tick(self, now: Now) -> None:
        for waiting in list(self._waiting.values()):
            if waiting.deadline_ms <= now.monotonic_ms:
                self._refuse(waiting)

    def next_deadline_ms(self) -> float | None:
        return min((each.deadline_ms for each in self._waiting.values()), default=None)

    def _make_room(self, broker_id: BrokerId) -> None:
        """Where too many wait, refuse the one that has waited longest. A true claim is confirmed within a round trip; a
        stranger's may wait until the deadline, and must not keep the broker itself from being confirmed."""
        known = self._broker.image.brokers
        same = [each for each in self._waiting.values() if each.connection.speaker.broker_id == broker_id]
        if len(same) >= MOST_OF_ONE:
            self._refuse(same[0])
        elif broker_id not in known:
            unknown = [each for each in self._waiting.values() if each.connection.speaker.broker_id not in known]
            if len(unknown) >= MOST_UNKNOWN:
                self._refuse(unknown[0])

    def _ask(self, waiting: _Waiting, unconfirmed: Unconfirmed, now: Now) -> None:
        speaker, address = waiting.connection.speaker, unconfirmed.address
        assert address is not None
        registered = self._broker.image.brokers.get(speaker.broker_id)
        is_registered = registered is not None and address in [(each.host, each.port) for each in registered.endpoints]
        purpose = Purpose.CONFIRM if is_registered else Purpose.NEWCOMER
        token = NO_TOKEN if unconfirmed.is_of_predecessor else speaker.token

        def then(answer: object, now: Now) -> None:
            if purpose is Purpose.NEWCOMER:
                self._peers.hang_up(speaker.broker_id, purpose)
            if self._waiting.get(waiting.connection.id) is not waiting:
                return
            found = answer if isinstance(answer, TokenAnswer) else TokenAnswer()
            if unconfirmed.is_of_predecessor:
                speaker.predecessor = found.incarnation_id
            elif found.is_ours:
                speaker.address = address
            else:
                speaker.is_refused = True
            self._let_go(waiting)

        self._peers.ask(
            Peer(speaker.broker_id, *address),
            purpose,
            API_VERSIONS,
            API_VERSIONS_VERSION,
            ApiVersionsRequest(client_software_name="klamm", client_software_version="1"),
            PATIENCE_MS,
            then,
            now,
            TokenAnswer,
            claim_bytes(QUESTION, self._broker.node_id, token),
        )

    def _refuse(self, waiting: _Waiting) -> None:
        waiting.connection.speaker.is_refused = True
        self._let_go(waiting)

    def _let_go(self, waiting: _Waiting) -> None:
        del self._waiting[waiting.connection.id]
        waiting.connection.awaits_speaker = False
        self._broker.waiting.changed(waiting.connection)
        self._touch(waiting.connection)
