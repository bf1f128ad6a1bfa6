"""The cluster's metadata at this node: the quorum's log, the controller that writes it, the image that follows it.

Every node takes part in the quorum, as a voter or as an observer, and follows what is committed into the broker's
image. Where the quorum's leader is, the controller is: it begins with the committed image when everything an earlier
leader left is committed, and is thrown away when the leadership is lost. A wish becomes a decision of the controller,
its records are proposed and replayed by the controller at once (it decides on what is not committed yet); when they
are committed, the image takes them in and whoever waited for that is answered.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TypeVar

from klamm.broker.broker import Broker, CarryingOut
from klamm.broker.housekeeping import METADATA
from klamm.broker.slices import Work
from klamm.codec.primitives import Malformed
from klamm.controller.controller import Controller
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.handlers.quorum_messages import reply_from_wire, to_wire
from klamm.ids import NO_BROKER, BrokerId, Epoch, Now, Offset
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, File, Files
from klamm.machine import Piece, Plan
from klamm.metadata.delta import Changes
from klamm.metadata.image import EMPTY
from klamm.metadata.records import MetadataRecord
from klamm.metadata.snapshot import records_of
from klamm.node.applier import Applier
from klamm.node.facts import MetadataFailed, NotDecided
from klamm.node.identity import Identity
from klamm.node.peers import Peer, Peers, Purpose
from klamm.node.proposing import Proposing
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.messages import Outgoing, QuorumFetch, SnapshotFetch
from klamm.quorum.raft import Raft
from klamm.quorum.voters import Voters

Response = TypeVar("Response")


class Metadata:
    def __init__(self, broker: Broker, files: Files, random: Random, peers: Peers, tell: Tell) -> None:
        self._broker = broker
        self._files = files
        self._random = random
        self._peers = peers
        self._tell = tell
        self._raft: Raft
        self._applier = Applier(broker, self._applied, self._look_again)
        self._controller: Controller | None = None
        self._controller_epoch = -1
        self._wanted: tuple[list[File], Offset] | None = None
        self.failure: str | None = None
        """Why nothing more is decided here."""
        self._seen: object = None
        self._leadership: tuple[BrokerId, Epoch] = (NO_BROKER, -1)
        self.is_busy = False
        """Whether the quorum may have something to do."""
        self.on_controller_changed: Callable[[Now], None] = lambda now: None
        self.on_followed: Callable[[Now], None] = lambda now: None

    def start(self, identity: Identity, voters: Voters, *, clean: bool, now: Now) -> None:
        """Take part in the quorum. Nobody is served yet: flushes are done here."""
        broker = self._broker
        recovery_point = broker.partitions.checkpointed(checkpoint.RECOVERY_POINTS).get(METADATA, 0)
        if set(voters) == {broker.node_id}:
            # Nobody else has the log, and where it was cut between two batches, nothing tells that its end is missing.
            broker.partitions.directories.doubt_image()
        self._raft = broker.quorum = Raft.open(
            broker.config,
            NodeIdentity(broker.node_id, identity.directory_id, identity.cluster_id),
            voters,
            self._files,
            self._random,
            now,
            clean=clean,
            recovery_point=recovery_point,
            is_voter_role=broker.config.is_controller,
            machine_restarted=broker.life.was_machine_restarted,
            on_damage=broker.partitions.directories.doubt_image,
            tell=self._tell,
        )
        broker.cluster_id = identity.cluster_id
        broker.image = EMPTY
        broker.carry_out = self.carry_out
        broker.metadata_recovery_point = lambda: self._raft.log.recovery_point
        self._raft.start(now)
        self.is_busy = True

    def controller_peer(self) -> Peer | None:
        """Where the active controller is, as far as we know."""
        leader_id = self._raft.leader_id
        if leader_id == NO_BROKER or (leader_id == self._broker.node_id and self._controller is None):
            return None
        address = self._raft.address_of(leader_id)
        return None if address is None else Peer(leader_id, *address)

    # Deciding.

    def carry_out(self, plan: Plan[MetadataRecord, Response]) -> Callable[[Now], CarryingOut[Response]]:
        """Have what this plan of the present controller says committed, in slices. Then its response, the offset at
        which it is true (None if it was before), and what kept some of it from being decided."""
        return partial(self._carry_out, plan, self._controller)

    def _carry_out(
        self, plan: Plan[MetadataRecord, Response], controller: Controller | None, now: Now
    ) -> CarryingOut[Response]:
        offset: Offset | None = None
        refusal: KafkaError | None = None
        proposing = Proposing(self._raft)
        while (piece := plan.next_piece()) is not None:
            if refusal is None:
                try:
                    self._check_controller(controller)
                    offset = self._propose(proposing, piece, now) or offset
                except KafkaError as error:
                    # The rest is looked at all the same: those who asked hear what is wrong with it.
                    refusal = error
            if not piece.is_last:
                now = yield
        return plan.response, offset, refusal

    def _check_controller(self, controller: Controller | None) -> None:
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.failure)
        if controller is None or self._controller is not controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

    def _propose(self, proposing: Proposing, piece: Piece[MetadataRecord], now: Now) -> Offset | None:
        """The offset of the last record, if a batch was proposed."""
        assert self._controller is not None
        try:
            offset = proposing.take(piece, self._controller, now)
        except DiskFailed as error:
            self._broker.storage.note(error)
            if self._raft.log.failed is not None:
                self.fail(str(error), now)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log cannot be written: {error}") from error
        self.is_busy = self.is_busy or offset is not None
        return offset

    def _begin_own(self, plan: Plan[MetadataRecord, None], now: Now) -> None:
        """Carry out a plan that nobody waits for."""
        work = self._own(plan, now)
        try:
            next(work)
        except StopIteration:
            return
        controller = self._controller
        self._broker.own_slices.add(work, self._own_is_done, lambda: self._controller is not controller, is_begun=True)

    def _own(self, plan: Plan[MetadataRecord, None], now: Now) -> Work:
        _, _, refusal = yield from self._carry_out(plan, self._controller, now)
        if refusal is not None:
            if refusal.code != ErrorCode.NOT_CONTROLLER:
                # (Else somebody else leads by now, and decides.)
                self._tell(NotDecided(refusal.message or refusal.code.name))
            if self._controller is not None:
                self._controller.look_again(now)

    def _own_is_done(self, error: Exception | None, now: Now) -> None:
        if error is not None:
            raise error
        self.is_busy = True

    # What happens.

    def tick(self, now: Now) -> None:
        due_ms = self._raft.next_deadline_ms
        if due_ms is not None and due_ms <= now.monotonic_ms:
            self._raft.tick(now)
            self.is_busy = True
        controller = self._controller
        if controller is not None:
            due_ms = controller.next_deadline_ms
            if due_ms is not None and due_ms <= now.monotonic_ms:
                self._begin_own(controller.tick(now), now)

    def next_deadline_ms(self) -> float | None:
        due = [self._raft.next_deadline_ms]
        if self._controller is not None:
            due.append(self._controller.next_deadline_ms)
        return min((each for each in due if each is not None), default=None)

    def node_is_gone(self, node_id: BrokerId, now: Now) -> None:
        """Its process is dead: nobody has to wait for a timeout."""
        self._raft.node_is_gone(node_id, now)
        self.is_busy = True
        if self._controller is not None:
            self._begin_own(self._controller.broker_is_gone(node_id, now), now)

    def settle(self, now: Now) -> None:
        """Send, apply and flush what the quorum wants. Part of settling."""
        self.is_busy = self._broker.quorum_touched = False
        raft = self._raft
        self._applier.begin_step()
        while True:
            ready = raft.ready(applies=not self._applier.is_busy)
            if ready.checkpoint:
                self._checkpoint(now)
            if ready.flush is not None:
                self._wanted = (ready.flush.files, ready.flush.up_to)
            for outgoing in ready.requests:
                self._send(outgoing, now)
            if not ready:
                break
            if ready.snapshot is not None or ready.committed:
                self._applier.take(ready.snapshot, ready.committed, now)
        if raft.log.failed is not None and self.failure is None:
            self.fail(raft.log.failed, now)
        self._follow_leadership(now)
        if raft.position != self._seen:
            leadership = (raft.leader_id, raft.epoch)
            self._seen = raft.position
            self._broker.waiting.changed(raft)
            if leadership != self._leadership:
                self._leadership = leadership
                self.on_controller_changed(now)

    def _checkpoint(self, now: Now) -> None:
        """The log was cut below what the checkpoint on disk may say, and recovery believes that."""
        try:
            self._broker.housekeeping.checkpoint_now()
        except DiskFailed as error:
            self.fail(str(error), now)

    @property
    def has_ended(self) -> bool:
        """Whether this node will never hear again what the cluster decides. Then it must not go on as if it did; the
        others will do without it. (A node alone stays, and serves what it has.)"""
        return self.failure is not None and len(self._raft.voters) > 1

    def _applied(self, changes: Changes, now: Now) -> None:
        """There is another image."""
        self.take_snapshot(now)
        if changes.brokers_changed:
            self._watch_brokers(now)
        self.on_followed(now)

    def _look_again(self) -> None:
        self.is_busy = True

    def _send(self, outgoing: Outgoing, now: Now) -> None:
        api, version, request = to_wire(outgoing)
        is_fetch = isinstance(outgoing.request, QuorumFetch | SnapshotFetch)
        purpose = Purpose.METADATA if is_fetch else Purpose.VOTE
        peer = Peer(outgoing.to, outgoing.host, outgoing.port)

        def then(answer: object, now: Now) -> None:
            self.is_busy = True
            try:
                reply = None if answer is None else reply_from_wire(outgoing, answer)
            except (KafkaError, Malformed):
                reply = None
            if reply is None:
                self._raft.lost(outgoing, now)
            else:
                self._raft.heard(outgoing, reply, now)

        self._peers.ask(peer, purpose, api, version, request, outgoing.timeout_ms, then, now)

    # Leading.

    def _follow_leadership(self, now: Now) -> None:
        raft = self._raft
        if self.failure is not None and len(raft.voters) == 1:
            # Nobody else will ever lead: this controller stays, to say why it decides nothing.
            return
        if self._controller is not None and (not raft.is_leader or raft.epoch != self._controller_epoch):
            self._controller = self._broker.controller = None
            self._peers.watch((), now)
            self._broker.waiting.nothing_applies_any_more()
        if self._controller is None and raft.is_active_leader and self._broker.image.offset >= raft.high_watermark - 1:
            broker = self._broker
            self._controller = Controller(broker.config, broker.cluster_id, self._random, broker.image, now)
            self._controller_epoch = raft.epoch
            broker.controller = self._controller
            self._watch_brokers(now)
            self._begin_own(self._controller.activate(now), now)
            self.on_controller_changed(now)

    def _watch_brokers(self, now: Now) -> None:
        """The controller keeps a connection to every broker it counts on, to notice at once when a process dies."""
        if self._controller is not None:
            watched = [
                Peer(broker.broker_id, endpoint.host, endpoint.port)
                for broker, endpoint in self._broker.known_brokers()
            ]
            self._peers.watch(watched, now)

    def resign(self, now: Now) -> None:
        """Before this node stops: another one shall lead, and need not find out by itself."""
        if self._raft.is_leader:
            self._raft.resign(now)
            self.is_busy = True

    # The disk.

    def files_to_flush(self) -> tuple[list[File], Offset] | None:
        wanted, self._wanted = self._wanted, None
        return wanted

    def flushed(self, up_to: Offset) -> None:
        self._raft.flushed(up_to)
        self.is_busy = True

    def fail(self, reason: str, now: Now) -> None:
        """The metadata log broke a promise: nothing more is decided here until a restart recovers it."""
        self.failure = f"The metadata log is offline: {reason}"
        self._raft.flush_failed(reason)
        self._broker.life.distrust()
        self._tell(MetadataFailed(reason))
        self.is_busy = True
        self._broker.waiting.nothing_applies_any_more()

    def take_snapshot(self, now: Now) -> None:
        """Write the image down if it is time, so that the log before it can go."""
        if not self._raft.wants_snapshot(now):
            return
        image = self._broker.image
        self._raft.take_snapshot(records_of(image), image.offset, image.epoch, now)

    def close(self) -> bool:
        """After the last step: what was proposed is flushed, whether or not somebody waited for it. Whether it was."""
        if self.failure is None:
            try:
                self._raft.close_cleanly()
            except DiskFailed as error:
                self.failure = str(error)
                self._tell(MetadataFailed(str(error)))
        return self.failure is None
