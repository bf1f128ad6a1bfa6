"""Vote (key 52): a candidate of the metadata quorum asks for a vote, or beforehand whether it would get one.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class PartitionData:
    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="1+")
    voter_directory_id: bytes = uuid(versions="1+")
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean(versions="2+")


@struct
class TopicData:
    topic_name: str = string()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="0-2", flexible="0+")
class VoteRequest:
    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32(versions="1+", default=-1)
    topics: list[TopicData] = array(TopicData)


@struct
class PartitionDataResponse:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


@struct
class TopicDataResponse:
    topic_name: str = string()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(versions="0-2", flexible="0+")
class VoteResponse:
    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0, tagged="1+")
