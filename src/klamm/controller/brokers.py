"""Brokers come, are counted on once they have caught up, and go.

A broker registers with an incarnation, new with each of its lives, and gets an epoch: whatever it says later carries
that epoch, so that what an earlier life sent cannot be taken for the present. It is fenced until a heartbeat shows that
its image holds its own registration. From then on it is active: it may lead and be in sync. It is fenced again when its
session runs out, when its death is evident, or when it asks for it.

    fenced    heartbeat, caught up                 active
    active    session over, dead, wants fence      fenced, its partitions handed over
    active    wants to shut down                   shutting down, its partitions handed over
    shutting  leads nothing, everybody knows       fenced, and told to go

A broker that did not shut down cleanly may have lost what it had not flushed. `previous_broker_epoch`, remembered on
disk by a clean shutdown, is how it proves that it has not; who cannot prove it is no longer in sync, nor eligible,
where somebody else is (KIP-966).

Two processes with one id would each be the broker. A second one is refused while the first one's session lasts, unless
it names the same directories: a process holds the lock of its directory, so the first one is gone.

A broker may hold thousands of partitions: they are handed over some hundred at a time, and others are heard in between.
While that lasts it can neither lead nor join (`State.leaving`).

Left out: directories that fail or are cordoned one by one. A node has one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from klamm.controller.changes import Changes, Pieces
from klamm.controller.configs import Configs
from klamm.controller.leadership import NOBODY, Wish
from klamm.controller.sessions import Sessions
from klamm.controller.state import PartitionKey, State
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, BrokerId, Now, Offset, Uuid
from klamm.machine import Piece
from klamm.metadata.image import Broker, Endpoint, FeatureRange, Image
from klamm.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from klamm.slicing import in_slices

NextOffset: TypeAlias = Callable[[], Offset]
"""Where the next record will stand."""

SHUTTING_DOWN = 1
RESERVED_DIRECTORIES = 100


@dataclass(slots=True)
class BrokerRegistration:
    broker_id: BrokerId
    incarnation_id: Uuid
    cluster_id: str
    endpoints: list[Endpoint]
    directories: list[Uuid]
    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    rack: str | None = None
    previous_broker_epoch: int = -1


@dataclass(slots=True)
class Registered:
    broker_epoch: int


@dataclass(slots=True)
class BrokerHeartbeat:
    broker_id: BrokerId
    broker_epoch: int
    metadata_offset: Offset
    """The broker's image holds everything up to here."""
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(slots=True)
class HeartbeatReply:
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool = False


class Brokers:
    """Decides about brokers. Holds what is not written down: who was heard of when, and what those who shut down wait
    for."""

    def __init__(self, cluster_id: str, configs: Configs, sessions: Sessions) -> None:
        self._cluster_id = cluster_id
        self._configs = configs
        self._sessions = sessions
        self._shutdown_offsets: dict[BrokerId, Offset] = {}
        self._registered_ms: dict[BrokerId, float] = {}
        self._to_be_known: dict[BrokerId, Offset] = {}
        """What a broker has to have seen of the metadata before it is counted on again, so that it knows what it no
        longer leads: its registration, or if it was fenced since, where the log ended when it was heard of again."""

    def begin_sessions(self, image: Image, now: Now) -> None:
        """A controller begins."""
        for broker in image.brokers.values():
            self._sessions.heard(broker.broker_id, now)

    def register(
        self, state: State, registration: BrokerRegistration, next_offset: NextOffset, now: Now
    ) -> Pieces[Registered]:
        """Where the last batch begins becomes the broker's epoch."""
        while True:
            broker_id = registration.broker_id
            known = self._checked(state.image, registration, now)
            if known is not None and known.incarnation_id == registration.incarnation_id:
                # The same life, amending what it said: it stays what it was.
                record = _registration_record(registration, known.epoch)
                record.fenced = known.fenced
                record.in_controlled_shutdown = known.in_controlled_shutdown
                self._sessions.heard(broker_id, now)
                yield Piece([record], is_last=True)
                return Registered(known.epoch)
            was_clean = known is not None and registration.previous_broker_epoch == known.epoch
            records = yield from self._restart(state, registration, clean=was_clean)
            if self._checked(state.image, registration, now) == known:
                break
            # Somebody else was heard meanwhile who is this broker.
            yield Piece(records)
        # What the old life had seen of the metadata, the new one may not have.
        self._sessions.forget(broker_id)
        self._sessions.heard(broker_id, now)
        self._registered_ms[broker_id] = now.monotonic_ms
        self._shutdown_offsets.pop(broker_id, None)
        epoch = self._to_be_known[broker_id] = next_offset()
        yield Piece([*records, _registration_record(registration, epoch)], is_last=True)
        return Registered(epoch)

    def heartbeat(
        self, state: State, beat: BrokerHeartbeat, next_offset: NextOffset, now: Now
    ) -> Pieces[HeartbeatReply]:
        image = state.image
        broker = checked_broker(image, beat.broker_id, beat.broker_epoch)
        self._sessions.heard(broker.broker_id, now, beat.metadata_offset)
        # The epoch is an offset of the batch that registered it, and batches are applied whole.
        is_caught_up = beat.metadata_offset >= broker.epoch
        if broker.broker_id in state.leaving:
            return HeartbeatReply(is_caught_up, is_fenced=True)
        if broker.fenced:
            is_caught_up = beat.metadata_offset >= self._to_be_known.setdefault(broker.broker_id, next_offset() - 1)
            if beat.want_shut_down:
                return HeartbeatReply(is_caught_up, is_fenced=True, should_shut_down=True)
            if beat.want_fence or not is_caught_up or broker.in_controlled_shutdown:
                return HeartbeatReply(is_caught_up, is_fenced=True)
            yield from self._unfence(state, broker)
            return HeartbeatReply(is_caught_up, is_fenced=False)
        if beat.want_fence or self._may_go(state, broker, beat):
            yield from self.fence(state, {broker.broker_id})
            return HeartbeatReply(is_caught_up, is_fenced=True, should_shut_down=beat.want_shut_down)
        if beat.want_shut_down and broker.broker_id not in self._shutdown_offsets:
            yield from self._shut_down(state, broker, next_offset)
        return HeartbeatReply(is_caught_up, is_fenced=False)

    def evidently_gone(self, state: State, broker_id: BrokerId, now: Now) -> Pieces[None]:
        """Somebody found its process dead. Right after a new life began, it is the old one that was found so."""
        registered_ms = self._registered_ms.get(broker_id)
        if registered_ms is None or now.monotonic_ms >= registered_ms + self._sessions.heartbeat_ms:
            yield from self.gone(state, {broker_id})

    def gone(self, state: State, broker_ids: Collection[BrokerId]) -> Pieces[None]:
        """These are dead, or silent for too long. Who is fenced already stays so."""
        brokers, leaving = state.image.brokers, state.leaving
        lost = {each for each in broker_ids if each in brokers and not brokers[each].fenced and each not in leaving}
        if lost:
            yield from self.fence(state, lost)

    def fence(self, state: State, broker_ids: Collection[BrokerId]) -> Pieces[None]:
        """All of them at once: what one loses is not given to another that is lost as well. They are fenced when all of
        their partitions are handed over: if this controller is gone before, the next one finds them as they were."""
        before = {broker_id: state.image.brokers[broker_id] for broker_id in sorted(broker_ids)}
        records = yield from self._hand_over(state, broker_ids)
        for broker_id, broker in before.items():
            now = state.image.brokers.get(broker_id)
            if now is None or now.epoch != broker.epoch or now.fenced:
                # Meanwhile a new life of it began, or it was fenced for another reason.
                continue
            self._to_be_known.pop(broker_id, None)
            records.append(BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=now.epoch, fenced=FENCE))
        yield Piece(records, is_last=True)

    def unregister(self, state: State, broker_id: BrokerId) -> Pieces[None]:
        """It is gone for good, as somebody says who knows. Its replicas stay assigned until they are moved."""
        _check_registered(state.image, broker_id)
        records = yield from self._hand_over(state, {broker_id})
        epoch = _check_registered(state.image, broker_id).epoch
        records.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch))
        yield Piece(records, is_last=True)

    def _checked(self, image: Image, registration: BrokerRegistration, now: Now) -> Broker | None:
        """Who is registered under its id now, if this one may be."""
        _check_identity(registration, self._cluster_id)
        known = image.brokers.get(registration.broker_id)
        if known is not None and known.incarnation_id != registration.incarnation_id:
            self._check_alone(known, registration, now)
        _check_directories(image, registration)
        _check_features(image, registration)
        return known

    def _check_alone(self, known: Broker, registration: BrokerRegistration, now: Now) -> None:
        is_alive = not known.fenced and self._sessions.lasts(known.broker_id, now)
        if is_alive and set(known.directories) != set(registration.directories):
            reason = f"Another process is broker {known.broker_id}, and alive."
            raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, reason)

    def _may_go(self, state: State, broker: Broker, beat: BrokerHeartbeat) -> bool:
        """It leads nothing, and everybody who would still ask it for something knows."""
        if not beat.want_shut_down or state.leads.get(broker.broker_id, 0):
            return False
        if not broker.in_controlled_shutdown:
            return True
        needed = self._shutdown_offsets.get(broker.broker_id)
        if needed is None:
            # Its partitions are still being handed over, or an earlier controller did not get to the end of it.
            return False
        others = [each.broker_id for each in state.image.brokers.values() if each.is_active]
        return all(self._sessions.metadata_offset(each) >= needed for each in others)

    def _unfence(self, state: State, broker: Broker) -> Pieces[None]:
        """It is active, and may lead where nobody does."""
        records: list[MetadataRecord] = [
            BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)
        ]
        for some, is_last in in_slices(state.held_by(broker.broker_id)):
            found = {broker.broker_id} if records else NOBODY
            changes = Changes(state, self._configs, found=found)
            for place in changes.places(some):
                if changes.state(place).leader == NO_BROKER or changes.rules(place.topic).unclean:
                    changes.change(place, Wish())
            yield Piece([*records, *changes.records], is_last=is_last)
            records = []

    def _shut_down(self, state: State, broker: Broker, next_offset: NextOffset) -> Pieces[None]:
        """It is not active from the first of these records on. Everybody has seen it whose image holds the last."""
        broker_id = broker.broker_id
        records: list[MetadataRecord] = []
        if not broker.in_controlled_shutdown:
            records.append(
                BrokerRegistrationChangeRecord(
                    broker_id=broker_id, broker_epoch=broker.epoch, in_controlled_shutdown=SHUTTING_DOWN
                )
            )
        for some, is_last in in_slices(state.held_by(broker_id)):
            changes = Changes(state, self._configs, lost={broker_id})
            _leave(changes, some, {broker_id})
            records += changes.records
            if is_last:
                self._shutdown_offsets[broker_id] = next_offset() + len(records) - 1
            yield Piece(records, is_last=is_last)
            records = []

    def _hand_over(self, state: State, broker_ids: Collection[BrokerId]) -> Pieces[list[MetadataRecord]]:
        """Their partitions go on without them. The last records are for those that say why."""
        with state.without(broker_ids):
            for some, is_last in in_slices(state.held_by(*broker_ids)):
                changes = Changes(state, self._configs, lost=broker_ids)
                _leave(changes, some, broker_ids)
                if not is_last:
                    yield Piece(changes.records)
            return changes.records

    def _restart(self, state: State, registration: BrokerRegistration, *, clean: bool) -> Pieces[list[MetadataRecord]]:
        """Its partitions go on without it until it has caught up. The last records are for that of its registration."""
        broker_id = registration.broker_id
        with state.without({broker_id}):
            for some, is_last in in_slices(state.held_by(broker_id)):
                homes = {broker_id: registration.directories}
                changes = Changes(state, self._configs, lost={broker_id}, homes=homes)
                for place in changes.places(some):
                    changes.restart(place, broker_id, clean=clean)
                if not is_last:
                    yield Piece(changes.records)
            return changes.records


def _leave(changes: Changes, keys: Collection[PartitionKey], broker_ids: Collection[BrokerId]) -> None:
    for place in changes.places(keys):
        isr = changes.state(place).isr
        left = tuple(each for each in isr if each not in broker_ids)
        if left != isr or changes.state(place).leader in broker_ids:
            changes.change(place, Wish(isr=left))


def _check_registered(image: Image, broker_id: BrokerId) -> Broker:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {broker_id} is not registered.")
    return broker


def checked_broker(image: Image, broker_id: BrokerId, broker_epoch: int) -> Broker:
    """The broker, if the one who speaks is its present life."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        reason = f"Broker {broker_id} has epoch {broker.epoch}, not {broker_epoch}."
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, reason)
    return broker


def _registration_record(registration: BrokerRegistration, broker_epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=broker_epoch,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in registration.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(registration.features.items())
        ],
        rack=registration.rack,
        log_dirs=list(registration.directories),
    )


def _check_identity(registration: BrokerRegistration, cluster_id: str) -> None:
    if registration.broker_id < 0:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, f"{registration.broker_id} is not the id of a broker.")
    if registration.cluster_id != cluster_id:
        reason = f"This is cluster {cluster_id}, not {registration.cluster_id}."
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)


def _check_directories(image: Image, registration: BrokerRegistration) -> None:
    directories = registration.directories
    if any(int.from_bytes(each, "big") < RESERVED_DIRECTORIES for each in directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "The first hundred ids are no directories of anybody.")
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "A broker needs at least one directory.")
    if len(set(directories)) != len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "A directory id is named twice.")
    for other in image.brokers.values():
        if other.broker_id != registration.broker_id and set(other.directories) & set(directories):
            reason = f"Broker {other.broker_id} is registered with one of these directories."
            raise KafkaError(ErrorCode.INVALID_REGISTRATION, reason)


def _check_features(image: Image, registration: BrokerRegistration) -> None:
    """It has to understand everything the cluster has agreed on."""
    for name, level in image.features.items():
        low, high = registration.features.get(name, FeatureRange(0, 0))
        if not low <= level <= high:
            reason = f"The cluster is at level {level} of {name}; the broker supports {low} to {high}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
