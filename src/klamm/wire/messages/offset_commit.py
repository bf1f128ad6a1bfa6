"""OffsetCommit (key 8): a group writes down how far it has read.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="6+", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class OffsetCommitRequestTopic:
    name: str = string(versions="2-9")
    topic_id: bytes = uuid(versions="10+")
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@message(versions="2-10", flexible="8+")
class OffsetCommitRequest:
    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(versions="7+", nullable="7+", default=None)
    retention_time_ms: int = int64(versions="2-4", default=-1)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@struct
class OffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class OffsetCommitResponseTopic:
    name: str = string(versions="2-9")
    topic_id: bytes = uuid(versions="10+")
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@message(versions="2-10", flexible="8+")
class OffsetCommitResponse:
    throttle_time_ms: int = int32(versions="3+")
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
