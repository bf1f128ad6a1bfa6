"""The cluster's metadata at this node: the quorum's log, the controller that writes it, the image that follows it.

A wish becomes a decision of the controller, its records are proposed to the quorum and replayed by the controller at
once (it decides on what is not committed yet); when they are committed, the broker's image takes them in and whoever
waited for that is answered.
"""

from collections.abc import Sequence
from random import Random

from klamm.broker.broker import Broker
from klamm.broker.housekeeping import METADATA
from klamm.controller import features
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration
from klamm.controller.controller import Controller
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.ids import Now, Offset, Uuid, drawn_uuid
from klamm.log import checkpoint
from klamm.log.files import DiskFailed, File, Files
from klamm.metadata.delta import Delta
from klamm.metadata.image import EMPTY, Endpoint
from klamm.metadata.records import MetadataRecord
from klamm.node.facts import MetadataFailed
from klamm.node.identity import Identity
from klamm.quorum.raft import Raft


class Metadata:
    def __init__(self, broker: Broker, files: Files, random: Random, tell: Tell) -> None:
        self._broker = broker
        self._files = files
        self._random = random
        self._tell = tell
        self._raft: Raft
        self._controller: Controller
        self._wanted: tuple[list[File], Offset] | None = None
        self._failure: str | None = None
        self.is_busy = False
        """Whether the quorum has something to flush or to apply."""

    def start(self, identity: Identity, endpoint: Endpoint, previous_broker_epoch: int, now: Now) -> None:
        """Replay the log, register this broker's new life, and be counted on. Nobody waits yet: flushes are done
        here."""
        broker = self._broker
        clean = previous_broker_epoch >= 0
        recovery_point = broker.partitions.checkpointed(checkpoint.RECOVERY_POINTS).get(METADATA, 0)
        self._raft = Raft.open(
            broker.config,
            identity.directory_id,
            self._files,
            now,
            clean=clean,
            recovery_point=recovery_point,
            tell=self._tell,
        )
        self._raft.start(now)
        broker.image = EMPTY
        self._catch_up()
        self._controller = Controller(broker.config, identity.cluster_id, self._random, broker.image)
        broker.controller = self._controller
        broker.propose = self.propose
        broker.metadata_recovery_point = lambda: self._raft.log.recovery_point
        first_records = self._controller.activate().records
        if first_records:
            self.propose(first_records, now)
            self._catch_up()
        self._register(identity, endpoint, previous_broker_epoch, now)

    def propose(self, records: Sequence[MetadataRecord], now: Now) -> Offset:
        """Have these records committed, all or none; the offset at which they are true."""
        if self._failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        try:
            offset = self._raft.propose(records, now)
        except DiskFailed as error:
            if self._raft.log.failed is not None:
                self.fail(str(error))
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log cannot be written: {error}") from error
        self.is_busy = True
        for record in records:
            self._controller.replay(record)
        return offset

    def apply_committed(self, now: Now) -> None:
        """Take what was committed into the broker's image. Part of settling."""
        while True:
            ready = self._raft.ready()
            if ready.flush is not None:
                self._wanted = (ready.flush.files, ready.flush.up_to)
            if not ready.committed:
                self.is_busy = False
                return
            delta = Delta(self._broker.image)
            for batch in ready.committed:
                for record in batch.records:
                    delta.replay(record)
            last = ready.committed[-1]
            image, changes = delta.finished(last.last_offset, last.epoch)
            self._broker.follow(image, changes, now)

    # The disk.

    def files_to_flush(self) -> tuple[list[File], Offset] | None:
        wanted, self._wanted = self._wanted, None
        return wanted

    def flushed(self, up_to: Offset) -> None:
        self._raft.flushed(up_to)
        self.is_busy = True

    def fail(self, reason: str) -> None:
        """The metadata log broke a promise: nothing more is decided here until a restart recovers it."""
        self._failure = f"The metadata log is offline: {reason}"
        self._raft.flush_failed(reason)
        self._tell(MetadataFailed(reason))
        self._broker.producer_ids.forget_granted()
        self._broker.waiting.nothing_applies_any_more()

    def close(self) -> bool:
        """After the last step: what was proposed is flushed, whether or not somebody waited for it. Whether it was."""
        if self._failure is None:
            try:
                self._raft.close_cleanly()
            except DiskFailed as error:
                self.fail(str(error))
        return self._failure is None

    # Starting.

    def _catch_up(self) -> None:
        """Flush, commit and apply until nothing is left; only before anybody is served."""
        broker = self._broker
        delta = Delta(broker.image)
        last = None
        while ready := self._raft.ready():
            if ready.flush is not None:
                self._files.flush(ready.flush.files)
                self._raft.flushed(ready.flush.up_to)
            for batch in ready.committed:
                for record in batch.records:
                    delta.replay(record)
                last = batch
        if last is not None:
            broker.image, _ = delta.finished(last.last_offset, last.epoch)

    def _register(self, identity: Identity, endpoint: Endpoint, previous_broker_epoch: int, now: Now) -> None:
        broker = self._broker
        registration = BrokerRegistration(
            broker_id=broker.node_id,
            incarnation_id=self._incarnation(),
            cluster_id=identity.cluster_id,
            endpoints=[endpoint],
            directories=[identity.directory_id],
            features=features.SUPPORTED,
            rack=broker.config.rack,
            previous_broker_epoch=previous_broker_epoch,
        )
        decision = self._controller.register_broker(registration, self._raft.log.end_offset)
        self.propose(decision.records, now)
        self._catch_up()
        beat = BrokerHeartbeat(broker.node_id, decision.response.broker_epoch, broker.image.offset)
        unfencing = self._controller.heartbeat(beat).records
        if unfencing:
            self.propose(unfencing, now)
            self._catch_up()

    def _incarnation(self) -> Uuid:
        return drawn_uuid(self._random)
