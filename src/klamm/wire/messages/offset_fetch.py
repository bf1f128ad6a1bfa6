"""OffsetFetch (key 9): how far a group has read.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, string, struct, uuid


@struct
class OffsetFetchRequestTopic:
    name: str = string()
    partition_indexes: list[int] = array(int32())


@struct
class OffsetFetchRequestTopics:
    name: str = string(versions="8-9")
    topic_id: bytes = uuid(versions="10+")
    partition_indexes: list[int] = array(int32())


@struct
class OffsetFetchRequestGroup:
    group_id: str = string()
    member_id: str | None = string(versions="9+", nullable="9+", default=None)
    member_epoch: int = int32(versions="9+", default=-1)
    topics: list[OffsetFetchRequestTopics] | None = array(OffsetFetchRequestTopics, nullable="0+")


@message(versions="1-10", flexible="6+")
class OffsetFetchRequest:
    group_id: str = string(versions="1-7")
    topics: list[OffsetFetchRequestTopic] | None = array(OffsetFetchRequestTopic, versions="1-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, versions="8+")
    require_stable: bool = boolean(versions="7+")


@struct
class OffsetFetchResponsePartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="5+", default=-1)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@struct
class OffsetFetchResponseTopic:
    name: str = string()
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition)


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1)
    metadata: str | None = string(nullable="0+")
    error_code: int = int16()


@struct
class OffsetFetchResponseTopics:
    name: str = string(versions="8-9")
    topic_id: bytes = uuid(versions="10+")
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions)


@struct
class OffsetFetchResponseGroup:
    group_id: str = string()
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics)
    error_code: int = int16()


@message(versions="1-10", flexible="6+")
class OffsetFetchResponse:
    throttle_time_ms: int = int32(versions="3+")
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, versions="1-7")
    error_code: int = int16(versions="2-7")
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, versions="8+")
