"""Kafka's metadata records, with Kafka's keys, versions and fields, so that Kafka's tools read our metadata log.

A record in the log is a frame version, the record's key and its version (unsigned varints), then the fields. We write
the versions that Kafka 4.3 writes at its own metadata version and read every version there is. Kafka has more kinds of
record (access control, quotas, tokens, …); they come with the features that write them, and a log that holds one we do
not know is refused rather than half understood.
"""

from typing import TypeAlias

from klamm.codec.compiler import decode_from, writer
from klamm.codec.primitives import Buffer, Malformed, read_unsigned_varint
from klamm.codec.schema import array, boolean, int8, int16, int32, int64, message, string, struct, uint16, uuid
from klamm.ids import NO_BROKER, NO_EPOCH, Uuid

FRAME_VERSION = 1

SAME_LEADER = -2
UNFENCE = -1
FENCE = 1


@message(versions="0", flexible="0+")
class TopicRecord:
    name: str = string()
    topic_id: Uuid = uuid()


@message(versions="0-2", flexible="0+")
class PartitionRecord:
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    replicas: list[int] = array(int32())
    isr: list[int] = array(int32())
    removing_replicas: list[int] = array(int32())
    adding_replicas: list[int] = array(int32())
    leader: int = int32(default=NO_BROKER)
    leader_recovery_state: int = int8(tag=0, tagged="0+")
    leader_epoch: int = int32(default=NO_EPOCH)
    partition_epoch: int = int32(default=-1)
    directories: list[Uuid] = array(uuid(), versions="1+")
    eligible_leader_replicas: list[int] | None = array(
        int32(), versions="2+", nullable="2+", default=None, tag=1, tagged="2+"
    )
    last_known_elr: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=2, tagged="2+")


@message(versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """What changed of a partition; a field left at its default did not. Naming a leader, even the same one, begins a
    new leader epoch."""

    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    isr: list[int] | None = array(int32(), nullable="0+", default=None, tag=0, tagged="0+")
    leader: int = int32(default=SAME_LEADER, tag=1, tagged="0+")
    replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=2, tagged="0+")
    removing_replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=3, tagged="0+")
    adding_replicas: list[int] | None = array(int32(), nullable="0+", default=None, tag=4, tagged="0+")
    leader_recovery_state: int = int8(default=-1, tag=5, tagged="0+")
    directories: list[Uuid] | None = array(uuid(), versions="1+", nullable="1+", default=None, tag=8, tagged="1+")
    eligible_leader_replicas: list[int] | None = array(
        int32(), versions="2+", nullable="2+", default=None, tag=6, tagged="2+"
    )
    last_known_elr: list[int] | None = array(int32(), versions="2+", nullable="2+", default=None, tag=7, tagged="2+")


@message(versions="0", flexible="0+")
class RemoveTopicRecord:
    topic_id: Uuid = uuid()


@message(versions="0", flexible="0+")
class ConfigRecord:
    """One setting of one resource. A value of None takes it back."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+")


@message(versions="0", flexible="0+")
class ProducerIdsRecord:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


@struct
class BrokerEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class BrokerFeature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(versions="2+")
    incarnation_id: Uuid = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(versions="1+")
    log_dirs: list[Uuid] = array(uuid(), versions="3+", tag=0, tagged="3+")
    cordoned_log_dirs: list[Uuid] | None = array(uuid(), versions="4+", nullable="4+", default=None, tag=1, tagged="4+")


@message(versions="0", flexible="0+")
class UnregisterBrokerRecord:
    broker_id: int = int32()
    broker_epoch: int = int64()


@message(versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0, tagged="0+")
    in_controlled_shutdown: int = int8(versions="1+", tag=1, tagged="1+")
    log_dirs: list[Uuid] = array(uuid(), versions="2+", tag=2, tagged="2+")
    cordoned_log_dirs: list[Uuid] | None = array(uuid(), versions="3+", nullable="3+", default=None, tag=3, tagged="3+")


@message(versions="0", flexible="0+")
class FeatureLevelRecord:
    name: str = string()
    feature_level: int = int16()


@message(versions="0", flexible="0+")
class NoOpRecord:
    pass


MetadataRecord: TypeAlias = (
    TopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | FeatureLevelRecord
    | NoOpRecord
)

# Key, and the version that is written: Kafka's for the metadata version that `controller/features.py` finalizes.
_WRITTEN: dict[type[MetadataRecord], tuple[int, int]] = {
    RegisterBrokerRecord: (0, 4),
    UnregisterBrokerRecord: (1, 0),
    TopicRecord: (2, 0),
    PartitionRecord: (3, 2),
    ConfigRecord: (4, 0),
    PartitionChangeRecord: (5, 2),
    RemoveTopicRecord: (9, 0),
    FeatureLevelRecord: (12, 0),
    ProducerIdsRecord: (15, 0),
    BrokerRegistrationChangeRecord: (17, 3),
    NoOpRecord: (20, 0),
}
_READ: dict[int, tuple[type[MetadataRecord], int]] = {key: (kind, newest) for kind, (key, newest) in _WRITTEN.items()}


def encode(record: MetadataRecord) -> bytes:
    key, version = _WRITTEN[type(record)]
    out = bytearray((FRAME_VERSION, key, version))
    writer(type(record), version)(out, record, [])
    return bytes(out)


def decode(buffer: Buffer) -> MetadataRecord:
    """The record whose frame is the whole of `buffer`."""
    try:
        frame_version, position = read_unsigned_varint(buffer, 0)
        key, position = read_unsigned_varint(buffer, position)
        version, position = read_unsigned_varint(buffer, position)
    except IndexError:
        raise Malformed("metadata record without a whole frame") from None
    if frame_version != FRAME_VERSION:
        raise Malformed(f"metadata record in frame version {frame_version}, only {FRAME_VERSION} is known")
    if key not in _READ:
        raise Malformed(f"metadata record of the unknown type {key}")
    kind, newest = _READ[key]
    if version > newest:
        raise Malformed(f"{kind.__name__} in version {version}, the newest known is {newest}")
    record, end = decode_from(kind, version, buffer, position)
    if end != len(buffer):
        raise Malformed(f"{kind.__name__}: {len(buffer) - end} bytes too many")
    return record
