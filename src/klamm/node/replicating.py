"""What replication wants, sent: a follower's fetches to its leaders, a leader's wishes about who is in sync to the
controller.

The broker's replication speaks in values (`broker/replication.py`); here they become requests, and whatever comes of a
request is given back to it, once.
"""

from collections.abc import Callable

from klamm.broker.broker import Broker
from klamm.broker.replication import IsrAsk
from klamm.handlers.replica_messages import (
    ALTER_PARTITION_VERSION,
    FETCH_VERSION,
    alter_partition_request,
    fetch_request,
    take_alter_partition_response,
    take_fetch_response,
)
from klamm.ids import BrokerId, Now
from klamm.node.peers import Peer, Peers, Purpose
from klamm.partition.fetching import FetchAsk
from klamm.wire.apis import ALTER_PARTITION, FETCH

ALTER_PARTITION_MS = 5_000.0


class Replicating:
    def __init__(self, broker: Broker, peers: Peers, controller: Callable[[], Peer | None]) -> None:
        self._broker = broker
        self._peers = peers
        self._controller = controller

    def send(self, now: Now) -> None:
        """Whatever is wanted now."""
        replication = self._broker.replication
        for ask in replication.take_fetches(now):
            self._fetch(ask, now)
        wishes = replication.take_isr_wishes(now)
        if wishes is not None:
            self._alter_partitions(wishes, now)

    def _fetch(self, ask: FetchAsk, now: Now) -> None:
        replication = self._broker.replication
        leader = self._peer(ask.leader)
        if leader is None:
            replication.fetch_lost(ask, now)
            return

        def then(answer: object, now: Now) -> None:
            if answer is None:
                replication.fetch_lost(ask, now)
            else:
                take_fetch_response(ask, answer, self._broker, now)  # type: ignore[arg-type]

        patience_ms = replication.fetch_patience_ms
        self._peers.ask(leader, Purpose.REPLICATION, FETCH, FETCH_VERSION, fetch_request(ask), patience_ms, then, now)

    def _alter_partitions(self, ask: IsrAsk, now: Now) -> None:
        replication, controller = self._broker.replication, self._controller()
        if controller is None:
            replication.isr_lost(ask, now)
            return

        def then(answer: object, now: Now) -> None:
            if answer is None:
                replication.isr_lost(ask, now)
            else:
                take_alter_partition_response(ask, answer, self._broker, now)  # type: ignore[arg-type]

        api, version, request = ALTER_PARTITION, ALTER_PARTITION_VERSION, alter_partition_request(ask)
        self._peers.ask(controller, Purpose.IN_SYNC, api, version, request, ALTER_PARTITION_MS, then, now)

    def _peer(self, broker_id: BrokerId) -> Peer | None:
        broker = self._broker.image.brokers.get(broker_id)
        if broker is None or not broker.endpoints:
            return None
        return Peer(broker_id, broker.endpoints[0].host, broker.endpoints[0].port)
