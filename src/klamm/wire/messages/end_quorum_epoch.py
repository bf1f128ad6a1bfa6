"""EndQuorumEpoch (key 54): the leader of the metadata quorum resigns and names successors.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct, uint16, uuid


@struct
class ReplicaInfo:
    candidate_id: int = int32()
    candidate_directory_id: bytes = uuid()


@struct
class PartitionData:
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(int32(), versions="0")
    preferred_candidates: list[ReplicaInfo] = array(ReplicaInfo, versions="1+")


@struct
class TopicData:
    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(versions="0-1", flexible="1+")
class EndQuorumEpochRequest:
    cluster_id: str | None = string(nullable="0+", default=None)
    topics: list[TopicData] = array(TopicData)
    leader_endpoints: list[LeaderEndpoint] = array(LeaderEndpoint, versions="1+")


@struct
class PartitionDataResponse:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class TopicDataResponse:
    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0, tagged="1+")
