"""ListOffsets (key 2): which offset a partition has at a time, at its beginning or at its end.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(versions="4+", default=-1)
    timestamp: int = int64()


@struct
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@message(versions="1-11", flexible="6+")
class ListOffsetsRequest:
    replica_id: int = int32()
    isolation_level: int = int8(versions="2+")
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+")


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(versions="4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@message(versions="1-11", flexible="6+")
class ListOffsetsResponse:
    throttle_time_ms: int = int32(versions="2+")
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
