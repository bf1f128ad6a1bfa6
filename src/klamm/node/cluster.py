"""This node among the others: what it asks of them, what it follows, and its own place.

It introduces the parts to one another: `metadata` (the quorum, the controller, the image), `membership` (being
counted on), `peers` (connections to others), `forwarding` and `errands` (what the controller is asked on behalf of
clients), and the broker's replication. None of them waits; whoever has something to do says so, and `settle` lets
everybody act until nobody has.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from random import Random

from klamm.broker.broker import Broker
from klamm.broker.replication import IsrAsk
from klamm.facts import Tell
from klamm.handlers.replica_messages import (
    ALTER_PARTITION_VERSION,
    FETCH_VERSION,
    alter_partition_request,
    fetch_request,
    take_alter_partition_response,
    take_fetch_response,
)
from klamm.ids import NO_BROKER, BrokerId, Now, drawn_uuid
from klamm.log.files import Files
from klamm.metadata.image import Endpoint
from klamm.node.dispatch import Dispatch
from klamm.node.effects import Effect, Stop
from klamm.node.errands import Errands
from klamm.node.facts import ControllerChanged, NodeGone, Replaced
from klamm.node.forwarding import Forwarding
from klamm.node.identity import Identity
from klamm.node.membership import Membership
from klamm.node.metadata import Metadata
from klamm.node.peers import Peer, Peers, Purpose
from klamm.partition.fetching import FetchAsk
from klamm.quorum.voters import Voter, Voters
from klamm.wire.apis import ALTER_PARTITION, FETCH
from klamm.wire.connection import ServerConnection

STOPPING_MS = 3_000.0
"""So long may it take the controller to give what we lead to others."""

GOODBYE_MS = 100.0
"""So long may the others take to hear that the quorum's leader stops."""

ALTER_PARTITION_MS = 5_000.0
OF_THE_CONTROLLER = (Purpose.MEMBERSHIP, Purpose.IN_SYNC, Purpose.FORWARD)


class Leaving(IntEnum):
    """How far we are with leaving the cluster."""

    NOT = 0
    HANDING_OVER = 1
    SAYING_GOODBYE = 2
    DONE = 3
    GONE = 4


class Cluster:
    def __init__(
        self, broker: Broker, files: Files, random: Random, touch: Callable[[ServerConnection], None], tell: Tell
    ) -> None:
        self._broker = broker
        self._random = random
        self._tell = tell
        self.peers = Peers(broker.node_id, self._ask_here, tell)
        self.metadata = Metadata(broker, files, random, self.peers, tell)
        controller = self.metadata.controller_peer
        self.forwarding = Forwarding(self.peers, controller, broker.waiting, touch)
        self.membership = Membership(broker, self.peers, controller, tell)
        self.dispatch = Dispatch(broker, touch, self.forwarding.forward, tell)
        self.peers.suspects = broker.absent.suspects
        broker.errands = Errands(broker, self.peers, controller)
        self.metadata.on_controller_changed = self._controller_changed
        self.metadata.on_followed = self._followed
        self._clean = False
        self._previous_epoch = -1
        self._is_replaced = False
        self._is_broker = broker.config.is_broker
        self._controller_id = NO_BROKER
        self._leaving = Leaving.NOT
        self._leave_by_ms: float | None = None
        self._acted = True
        self.has_effects = False
        self.next_due_ms: float | None = None

    def start(self, identity: Identity, endpoint: Endpoint, previous_broker_epoch: int, now: Now) -> None:
        self._clean = previous_broker_epoch >= 0
        self._previous_epoch = previous_broker_epoch
        self.metadata.start(identity, self._voters(endpoint), clean=self._clean, now=now)
        if self._is_broker:
            epoch_before = previous_broker_epoch
            if not self._clean and self._broker.config.voters:
                # (A broker alone has nobody to keep its right to lead against, and begins a new leader epoch.)
                epoch_before = self._broker.life.epoch_before()
            self.membership.start(identity, endpoint, drawn_uuid(self._random), epoch_before, now)

    def _voters(self, endpoint: Endpoint) -> Voters:
        configured = self._broker.config.voters
        if configured:
            return Voters.configured(configured)
        return Voters.of([Voter(self._broker.node_id, host=endpoint.host, port=endpoint.port)])

    @property
    def is_serving(self) -> bool:
        return self.membership.is_serving or not self._is_broker

    def note_clean_shutdown(self) -> bool:
        """Whether there is nothing to recover, and that was put down. A life that opened nothing ends as it began."""
        if not self._is_broker:
            return True
        if self._is_replaced:
            return False
        epoch = max(self.membership.epoch, self._previous_epoch)
        return (self._broker.is_open or self._clean) and self._broker.note_clean_shutdown(epoch)

    # What happens.

    def opened(self, connection: int) -> None:
        self._acted = True
        self.peers.opened(connection)

    def refused(self, connection: int, nobody_listens: bool, now: Now) -> None:
        self._acted = True
        self.peers.refused(connection, nobody_listens, now)

    def received(self, connection: int, frames: Sequence[memoryview], now: Now) -> None:
        self._acted = True
        self.peers.received(connection, frames, now)

    def closed(self, connection: int, now: Now) -> None:
        self._acted = True
        self.peers.closed(connection, now)

    def tick(self, now: Now) -> None:
        self._acted = True
        self.peers.tick(now)
        self.metadata.tick(now)
        self.forwarding.tick(now)
        self._broker.replication.tick(now)
        if self._leave_by_ms is not None and self._leave_by_ms <= now.monotonic_ms:
            self._leave(now)

    # Settling.

    @property
    def is_busy(self) -> bool:
        return self._acted or self.metadata.is_busy or self.peers.has_work

    def settle(self, now: Now) -> None:
        """Everybody acts who has something to do. What follows from it may need another round."""
        self._acted = self.peers.has_work = False
        self.has_effects = True
        for node_id in self.peers.take_gone():
            self._tell(NodeGone(node_id))
            self._broker.absent.note(node_id, self._broker.image, now)
            self.metadata.node_is_gone(node_id, now)
        if not self._broker.absent.suspects:
            self._broker.waiting.changed(self._broker.absent)
        if self.metadata.is_busy or self._broker.quorum_touched:
            self.metadata.settle(now)
        if self._is_broker and not self._broker.is_open:
            self._open_when_caught_up(now)
        if self._broker.replication.is_busy:
            self._replicate(now)
        due_ms = self.membership.next_deadline_ms()
        if due_ms is not None and due_ms <= now.monotonic_ms:
            self.membership.tick(now)
            self._acted = True
        if self.membership.may_stop and self._leaving is Leaving.HANDING_OVER:
            self._leave(now)
        if self._leaving < Leaving.DONE and (self.metadata.has_ended or self._is_replaced):
            self._leaving = Leaving.DONE

    def take_effects(self) -> list[Effect]:
        self.has_effects = False
        effects = self.peers.take_effects()
        due = (
            self.peers.next_deadline_ms(),
            self.metadata.next_deadline_ms(),
            self.membership.next_deadline_ms(),
            self.forwarding.next_deadline_ms(),
            self._broker.replication.next_deadline_ms,
            self._leave_by_ms,
        )
        self.next_due_ms = min((each for each in due if each is not None), default=None)
        if self._leaving is Leaving.DONE:
            self._leaving = Leaving.GONE
            effects.append(Stop())
        return effects

    def _replicate(self, now: Now) -> None:
        """Send what followers want of their leaders, and leaders of the controller."""
        broker, replication = self._broker, self._broker.replication
        for ask in replication.take_fetches(now):
            peer = self._broker_peer(ask.leader)
            if peer is None:
                replication.fetch_lost(ask, now)
                continue

            def fetched(answer: object, now: Now, ask: FetchAsk = ask) -> None:
                if answer is None:
                    replication.fetch_lost(ask, now)
                else:
                    take_fetch_response(ask, answer, broker, now)  # type: ignore[arg-type]

            request = fetch_request(ask)
            patience_ms = replication.fetch_patience_ms
            self.peers.ask(peer, Purpose.REPLICATION, FETCH, FETCH_VERSION, request, patience_ms, fetched, now)
        wishes = replication.take_isr_wishes(now)
        if wishes is not None:
            self._alter_partitions(wishes, now)

    def _alter_partitions(self, ask: IsrAsk, now: Now) -> None:
        broker, replication = self._broker, self._broker.replication
        controller = self.metadata.controller_peer()
        if controller is None:
            replication.isr_lost(ask, now)
            return

        def then(answer: object, now: Now) -> None:
            if answer is None:
                replication.isr_lost(ask, now)
            else:
                take_alter_partition_response(ask, answer, broker, now)  # type: ignore[arg-type]
            self._acted = True

        request = alter_partition_request(ask)
        self.peers.ask(
            controller,
            Purpose.IN_SYNC,
            ALTER_PARTITION,
            ALTER_PARTITION_VERSION,
            request,
            ALTER_PARTITION_MS,
            then,
            now,
        )

    def _broker_peer(self, broker_id: BrokerId) -> Peer | None:
        broker = self._broker.image.brokers.get(broker_id)
        if broker is None or not broker.endpoints:
            return None
        return Peer(broker_id, broker.endpoints[0].host, broker.endpoints[0].port)

    # What the parts tell one another.

    def _ask_here(
        self, api: int, version: int, request: object, deadline_ms: float, then: Callable[[object, Now], None], now: Now
    ) -> None:
        def heard(answer: object, now: Now) -> None:
            self._acted = True
            then(answer, now)

        self._acted = True
        self.dispatch.here(api, version, request, deadline_ms, heard, now)

    def _controller_changed(self, now: Now) -> None:
        quorum = self._broker.quorum
        if self._controller_id not in (NO_BROKER, quorum.leader_id):
            # It may hang, and keep what was asked of it for as long as it likes.
            self.peers.give_up(self._controller_id, OF_THE_CONTROLLER, now)
        self._controller_id = quorum.leader_id
        if self.metadata.controller_peer() is not None:
            self._tell(ControllerChanged(quorum.leader_id, quorum.epoch))
        self.membership.controller_changed(now)
        self.forwarding.controller_changed(now)
        self.forwarding.tick(now)

    def _followed(self, now: Now) -> None:
        if self._is_broker and not self._is_replaced and self.membership.is_replaced:
            self._is_replaced = True
            self._tell(Replaced(self._broker.node_id))
        self.membership.followed(now)

    def _open_when_caught_up(self, now: Now) -> None:
        """The logs are opened once the image says for certain which of them are ours."""
        if 0 <= self.membership.epoch <= self._broker.image.offset:
            self._broker.open(now, clean=self._clean)
            self.membership.followed(now)

    # Leaving.

    def begin_to_stop(self, now: Now) -> None:
        self._acted = True
        if self._leaving is not Leaving.NOT:
            return
        self._leaving = Leaving.HANDING_OVER
        others = [each for each in self._broker.image.brokers.values() if each.broker_id != self._broker.node_id]
        if self.membership.is_serving and any(broker.is_active for broker in others):
            self._leave_by_ms = now.monotonic_ms + STOPPING_MS
            self.membership.begin_to_stop(now)
        else:
            self._leave(now)

    def _leave(self, now: Now) -> None:
        """The next step of leaving: what we led is with others, or nobody waits for it any longer. If we lead the
        quorum, they hear that this ends too."""
        self._acted = True
        quorum = self._broker.quorum
        if self._leaving is Leaving.HANDING_OVER and quorum.is_leader and len(quorum.voters) > 1:
            self._leaving = Leaving.SAYING_GOODBYE
            self._leave_by_ms = now.monotonic_ms + GOODBYE_MS
            self.metadata.resign(now)
        elif self._leaving < Leaving.DONE:
            self._leaving = Leaving.DONE
            self._leave_by_ms = None
