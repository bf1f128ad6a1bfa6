"""This node among the others: what it asks of them, what it follows, and its own place.

It introduces the parts to one another: `metadata` (the quorum, the controller, the image), `membership` (being
counted on), `peers` (connections to others), `forwarding` and `errands` (what the controller is asked on behalf of
clients), `replicating`, and `leaving`. None of them waits; whoever has something to do says so, and `settle` lets
everybody act until nobody has.
"""

from collections.abc import Callable, Sequence
from random import Random

from klamm.broker.broker import Broker
from klamm.broker.speaker import Unconfirmed
from klamm.facts import Tell
from klamm.ids import NO_BROKER, Now, drawn_uuid
from klamm.log.files import Files
from klamm.metadata.image import Endpoint
from klamm.node.confirmation import Confirmations
from klamm.node.dispatch import Dispatch
from klamm.node.effects import Effect, Stop
from klamm.node.errands import Errands
from klamm.node.facts import ControllerChanged, NodeGone
from klamm.node.forwarding import Forwarding
from klamm.node.identity import Identity
from klamm.node.leaving import Leaving
from klamm.node.membership import Membership
from klamm.node.metadata import Metadata
from klamm.node.peers import Peers, Purpose
from klamm.node.replicating import Replicating
from klamm.quorum.voters import Voter, Voters
from klamm.wire.claims import Claim, TokenAnswer
from klamm.wire.connection import ServerConnection

TO_BE_TOLD_ANEW = (Purpose.MEMBERSHIP, Purpose.IN_SYNC)
"""What a broker tells the controller can be told again to the next one, at once."""

UNDER_WAY_MS = 500.0
"""What it was asked for a client may be done already: its answer comes within this time if it lives. Who asked the next
controller at once would hear that the topic exists, or that the voter is none."""


class Cluster:
    def __init__(
        self, broker: Broker, files: Files, random: Random, touch: Callable[[ServerConnection], None], tell: Tell
    ) -> None:
        self._broker = broker
        self._random = random
        self._tell = tell
        self.peers = Peers(broker.node_id, self._ask_here, random, tell)
        self.metadata = Metadata(broker, files, random, self.peers, tell)
        controller = self.metadata.controller_peer
        self.forwarding = Forwarding(self.peers, controller, broker.waiting, touch)
        self.membership = Membership(broker, self.peers, controller, tell)
        self.leaving = Leaving(broker, self.membership, self.metadata)
        self.replicating = Replicating(broker, self.peers, controller)
        self.confirmations = Confirmations(broker, self.peers, touch)
        self.dispatch = Dispatch(broker, touch, self.forwarding.forward, self._confirm, self._answer_question, tell)
        self.peers.suspects = broker.absent.suspects
        broker.errands = Errands(broker, self.peers, controller)
        self.metadata.on_controller_changed = self._controller_changed
        self.metadata.on_followed = self.membership.followed
        self._clean = False
        self._previous_epoch = -1
        self._is_broker = broker.config.is_broker
        self._controller_id = NO_BROKER
        self._acted = True
        self._metadata_moved = True
        self._metadata_due_ms: float | None = None
        self.has_effects = False
        self.next_due_ms: float | None = None

    def start(self, identity: Identity, endpoint: Endpoint, previous_broker_epoch: int, now: Now) -> None:
        self._clean = previous_broker_epoch >= 0
        self._previous_epoch = previous_broker_epoch
        self.metadata.start(identity, self._voters(endpoint), clean=self._clean, now=now)
        if self._is_broker:
            life = self._broker.life
            epoch_before = previous_broker_epoch
            if not self._clean and self._broker.config.voters:
                # (A broker alone has nobody to keep its right to lead against, and begins a new leader epoch.)
                epoch_before = life.epoch_before()
            incarnation = life.incarnation_before() or drawn_uuid(self._random)
            life.ask(epoch_before, incarnation)
            self.membership.start(identity, endpoint, incarnation, epoch_before, now)
        else:
            # A note of the machine's present start is all that is needed.
            self._broker.life.ask(-1, b"")

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
        if self.membership.is_replaced or self._broker.life.is_doubted:
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

    def begin_to_stop(self, now: Now) -> None:
        self._acted = True
        self.leaving.begin(now)

    def tick(self, now: Now) -> None:
        self._acted = self._metadata_moved = True
        self.peers.tick(now)
        self.metadata.tick(now)
        self.forwarding.tick(now)
        self.confirmations.tick(now)
        self._broker.replication.tick(now)

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
            self._metadata_moved = True
            self.confirmations.look_again()
        if self._is_broker and not self._broker.is_open:
            self._open_when_caught_up(now)
        if self._broker.replication.is_busy:
            self.replicating.send(now)
        due_ms = self.membership.next_deadline_ms()
        if due_ms is not None and due_ms <= now.monotonic_ms:
            self.membership.tick(now)
            self._acted = True
        self.leaving.look(now)

    def take_effects(self) -> list[Effect]:
        self.has_effects = False
        effects = self.peers.take_effects()
        if self._metadata_moved:
            self._metadata_moved = False
            self._metadata_due_ms = self.metadata.next_deadline_ms()
        due = (
            self.peers.next_deadline_ms(),
            self._metadata_due_ms,
            self.membership.next_deadline_ms(),
            self.forwarding.next_deadline_ms(),
            self.confirmations.next_deadline_ms(),
            self._broker.replication.next_deadline_ms,
            self.leaving.due_ms,
        )
        self.next_due_ms = min((each for each in due if each is not None), default=None)
        if self.leaving.takes_leave():
            effects.append(Stop())
        return effects

    # What the parts tell one another.

    def _confirm(self, connection: ServerConnection, unconfirmed: Unconfirmed, now: Now) -> None:
        self._acted = True
        self.confirmations.wait(connection, unconfirmed, now)

    def _answer_question(self, question: Claim) -> TokenAnswer:
        is_ours = self.peers.is_ours(question.token, shown_to=question.broker_id)
        return TokenAnswer(is_ours=is_ours, incarnation_id=self.membership.incarnation_id)

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
            self.peers.give_up(self._controller_id, TO_BE_TOLD_ANEW, now)
            self.peers.hurry(self._controller_id, Purpose.FORWARD, UNDER_WAY_MS, now)
        self._controller_id = quorum.leader_id
        if self.metadata.controller_peer() is not None:
            self._tell(ControllerChanged(quorum.leader_id, quorum.epoch))
        self.membership.controller_changed(now)
        self.forwarding.controller_changed(now)
        self.forwarding.tick(now)

    def _open_when_caught_up(self, now: Now) -> None:
        """The logs are opened once the image says for certain which of them are ours."""
        if 0 <= self.membership.epoch <= self._broker.image.offset:
            self._broker.open(now, clean=self._clean)
            if self._broker.life.is_doubted:
                self.membership.admit_loss(drawn_uuid(self._random), now)
            self.membership.followed(now)
