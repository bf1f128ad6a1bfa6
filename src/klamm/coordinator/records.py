"""What is written to `__consumer_offsets`, in Kafka's own formats, so that Kafka's formatters read it.

A record is a key and a value. The key begins with its kind, the value with its version; a key without a value is a
tombstone, and says that what the key names is gone. A kind we do not know (share groups, streams) is skipped: it is
somebody else's, and compaction keeps it.

Offsets are written in version 4, which knows the topic's id, where that is known, and else in version 3; groups of the
classic protocol in version 3, as Kafka does.
"""

from typing import NamedTuple, TypeAlias

from klamm.codec.compiler import decode, encode
from klamm.codec.primitives import Buffer, Malformed
from klamm.codec.schema import array, bytes_, int8, int32, int64, message, nested, string, struct, uuid
from klamm.ids import NO_EPOCH, ZERO_UUID, Uuid

# Keys. They have no flexible versions.


@message(versions="0")
class OffsetCommitKey:
    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(versions="0")
class GroupMetadataKey:
    group: str = string()


@message(versions="0")
class ConsumerGroupMetadataKey:
    group: str = string()


@message(versions="0")
class ConsumerGroupPartitionMetadataKey:
    """What Kafka wrote before 4.1; only ever deleted."""

    group: str = string()


@message(versions="0")
class ConsumerGroupMemberMetadataKey:
    group: str = string()
    member_id: str = string()


@message(versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    group: str = string()


@message(versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    group: str = string()
    member_id: str = string()


@message(versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    group: str = string()
    member_id: str = string()


@message(versions="0")
class ConsumerGroupRegularExpressionKey:
    group: str = string()
    regular_expression: str = string()


# Values.


@message(versions="0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = int64()
    leader_epoch: int = int32(versions="3+", default=NO_EPOCH)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1)
    topic_id: Uuid = uuid(versions="4+", tag=0, tagged="4+")


@struct
class ClassicMemberValue:
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(versions="1+")
    session_timeout: int = int32()
    subscription: bytes = bytes_()
    assignment: bytes = bytes_()


@message(versions="0-4", flexible="4+")
class GroupMetadataValue:
    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1)
    members: list[ClassicMemberValue] = array(ClassicMemberValue)


@message(versions="0", flexible="0+")
class ConsumerGroupMetadataValue:
    epoch: int = int32()
    metadata_hash: int = int64(tag=0, tagged="0+")


@struct
class ClassicProtocolValue:
    name: str = string()
    metadata: bytes = bytes_()


@struct
class ClassicMemberMetadataValue:
    """A member of the classic protocol in a group of the newer one."""

    session_timeout_ms: int = int32()
    supported_protocols: list[ClassicProtocolValue] = array(ClassicProtocolValue)


@message(versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+", default=None)
    classic_member_metadata: ClassicMemberMetadataValue | None = nested(
        ClassicMemberMetadataValue, nullable="0+", default=None, tag=0, tagged="0+"
    )


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0, tagged="0+")


@struct
class TopicPartitionsValue:
    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32())


@message(versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartitionsValue] = array(TopicPartitionsValue)


@struct
class EpochPartitionsValue:
    """Partitions a member has, and the epoch from which on it has each."""

    topic_id: Uuid = uuid()
    partitions: list[int] = array(int32())
    assignment_epochs: list[int] | None = array(int32(), nullable="0+", default=None, tag=0, tagged="0+")


@message(versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: list[EpochPartitionsValue] = array(EpochPartitionsValue)
    partitions_pending_revocation: list[EpochPartitionsValue] = array(EpochPartitionsValue)


@message(versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = array(string())
    version: int = int64()
    timestamp: int = int64()


Key: TypeAlias = (
    OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
Value: TypeAlias = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)


class GroupRecord(NamedTuple):
    """What the key names is now this; without a value it is gone."""

    key: Key
    value: Value | None


OFFSET_COMMIT_LEGACY = 0

_KINDS: dict[int, tuple[type[Key], type[Value] | None, int]] = {
    1: (OffsetCommitKey, OffsetCommitValue, 4),
    2: (GroupMetadataKey, GroupMetadataValue, 4),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, 0),
    4: (ConsumerGroupPartitionMetadataKey, None, 0),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, 0),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue, 0),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue, 0),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue, 0),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue, 0),
}
"""By the number a key begins with: its type, its value's, and the newest version of that."""

_KIND_OF: dict[type, int] = {kind[0]: number for number, kind in _KINDS.items()}


def encoded(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Key and value as they stand in the log."""
    key = _KIND_OF[type(record.key)].to_bytes(2, "big") + encode(record.key, 0)
    value = record.value
    if value is None:
        return key, None
    version = _version_of(value)
    return key, version.to_bytes(2, "big") + encode(value, version)


def decoded(key: Buffer | None, value: Buffer | None) -> GroupRecord | None:
    """The record, or None if it is of a kind we do not know. Raises Malformed."""
    if key is None or len(key) < 2:
        raise Malformed("a record of groups without a key")
    number = int.from_bytes(key[:2], "big")
    known = _KINDS.get(1 if number == OFFSET_COMMIT_LEGACY else number)
    if known is None:
        return None
    key_type, value_type, newest = known
    name = decode(key_type, 0, memoryview(key)[2:], exact=True)
    if value is None or value_type is None:
        return GroupRecord(name, None)
    if len(value) < 2:
        raise Malformed(f"{value_type.__name__} without a version")
    version = int.from_bytes(value[:2], "big")
    if version > newest:
        raise Malformed(f"{value_type.__name__} in version {version}, the newest known is {newest}")
    return GroupRecord(name, decode(value_type, version, memoryview(value)[2:]))


def _version_of(value: Value) -> int:
    if isinstance(value, OffsetCommitValue):
        if value.expire_timestamp >= 0:
            return 1
        return 3 if value.topic_id == ZERO_UUID else 4
    return 3 if isinstance(value, GroupMetadataValue) else 0
