"""Fetch (key 1): record batches from an offset on, for consumers, followers and the metadata quorum alike.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import Records, array, int8, int16, int32, int64, message, nested, records, string, struct, uuid


@struct
class ReplicaState:
    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


@struct
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(versions="9+", default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(versions="12+", default=-1)
    log_start_offset: int = int64(versions="5+", default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(versions="17+", tag=0, tagged="17+")
    high_watermark: int = int64(versions="18+", default=9223372036854775807, tag=1, tagged="18+")


@struct
class FetchTopic:
    topic: str = string(versions="4-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic:
    topic: str = string(versions="7-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[int] = array(int32())


@message(versions="4-18", flexible="12+")
class FetchRequest:
    cluster_id: str | None = string(versions="12+", nullable="12+", default=None, tag=0, tagged="12+")
    replica_id: int = int32(versions="4-14", default=-1)
    replica_state: ReplicaState = nested(ReplicaState, versions="15+", tag=1, tagged="15+")
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    isolation_level: int = int8()
    session_id: int = int32(versions="7+")
    session_epoch: int = int32(versions="7+", default=-1)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, versions="7+")
    rack_id: str = string(versions="11+")


@struct
class EpochEndOffset:
    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class SnapshotId:
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction:
    producer_id: int = int64()
    first_offset: int = int64()


@struct
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1)
    log_start_offset: int = int64(versions="5+", default=-1)
    diverging_epoch: EpochEndOffset = nested(EpochEndOffset, versions="12+", tag=0, tagged="12+")
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, versions="12+", tag=1, tagged="12+")
    snapshot_id: SnapshotId = nested(SnapshotId, versions="12+", tag=2, tagged="12+")
    aborted_transactions: list[AbortedTransaction] | None = array(AbortedTransaction, nullable="0+")
    preferred_read_replica: int = int32(versions="11+", default=-1)
    records: Records = records(nullable="0+", default=None)


@struct
class FetchableTopicResponse:
    topic: str = string(versions="4-12")
    topic_id: bytes = uuid(versions="13+")
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(versions="4-18", flexible="12+")
class FetchResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16(versions="7+")
    session_id: int = int32(versions="7+")
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="16+", tag=0, tagged="16+")
