"""DescribeQuorum (key 55): the metadata quorum: leader, voters, observers and how far each is.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class PartitionData:
    partition_index: int = int32()


@struct
class TopicData:
    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    topics: list[TopicData] = array(TopicData)


@struct
class ReplicaState:
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1)
    last_caught_up_timestamp: int = int64(versions="1+", default=-1)


@struct
class PartitionDataResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+")
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@struct
class TopicDataResponse:
    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class Node:
    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


@message(versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="2+")
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    nodes: list[Node] = array(Node, versions="2+")
