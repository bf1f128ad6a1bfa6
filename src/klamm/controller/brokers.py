"""Brokers come, and are counted on once they have caught up.

A broker registers with an incarnation, new each time its process starts, and gets an epoch: whatever it says later
carries that epoch, so that what an earlier life sent cannot be taken for the present. It is fenced until a heartbeat
shows that its image holds its own registration.

A broker that did not shut down cleanly may have lost what it had not flushed, and would append other records at the
same offsets. So where it led, it begins a new leader epoch; `previous_broker_epoch`, remembered on disk by a clean
shutdown, is how it proves that this is not needed (KIP-966).

Left out until there is more than one broker: sessions that run out, fencing, controlled shutdown, leaving the in-sync
replicas. One broker has nobody to hand over to.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId, Offset, Uuid
from klamm.machine import Decision
from klamm.metadata.image import Broker, Endpoint, FeatureRange, Image
from klamm.metadata.records import (
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)


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


@dataclass(slots=True)
class HeartbeatReply:
    is_caught_up: bool
    is_fenced: bool


def register(
    image: Image, registration: BrokerRegistration, cluster_id: str, next_offset: Offset
) -> Decision[MetadataRecord, Registered]:
    """`next_offset` is where the first of these records will stand; it becomes the broker's epoch."""
    if registration.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID, f"This is cluster {cluster_id}, not {registration.cluster_id}."
        )
    _check_directories(image, registration)
    _check_features(image, registration)
    known = image.brokers.get(registration.broker_id)
    record = _registration_record(registration, next_offset)
    if known is not None and known.incarnation_id == registration.incarnation_id:
        # The same life, amending what it said: it stays what it was.
        record.broker_epoch = known.epoch
        record.fenced = known.fenced
        record.in_controlled_shutdown = known.in_controlled_shutdown
        return Decision(Registered(known.epoch), [record])
    records: list[MetadataRecord] = []
    if known is not None and registration.previous_broker_epoch != known.epoch:
        records += _new_leader_epochs(image, registration.broker_id)
    records.append(record)
    return Decision(Registered(next_offset), records)


def heartbeat(image: Image, beat: BrokerHeartbeat) -> Decision[MetadataRecord, HeartbeatReply]:
    broker = checked_broker(image, beat.broker_id, beat.broker_epoch)
    # The epoch is an offset of the batch that registered it, and batches are applied whole.
    is_caught_up = beat.metadata_offset >= broker.epoch
    if not broker.fenced or beat.want_fence or not is_caught_up:
        return Decision(HeartbeatReply(is_caught_up, broker.fenced))
    change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=UNFENCE)
    return Decision(HeartbeatReply(is_caught_up, is_fenced=False), [change])


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


def _check_directories(image: Image, registration: BrokerRegistration) -> None:
    directories = registration.directories
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


def _new_leader_epochs(image: Image, broker_id: BrokerId) -> list[MetadataRecord]:
    return [
        PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker_id)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if state.leader == broker_id
    ]
