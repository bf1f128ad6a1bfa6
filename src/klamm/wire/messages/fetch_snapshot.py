"""FetchSnapshot (key 59): a slice of a metadata snapshot.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import (
    Records,
    array,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class SnapshotId:
    end_offset: int = int64()
    epoch: int = int32()


@struct
class PartitionSnapshot:
    partition: int = int32()
    current_leader_epoch: int = int32()
    snapshot_id: SnapshotId = nested(SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid(versions="1+", tag=0, tagged="1+")


@struct
class TopicSnapshot:
    name: str = string()
    partitions: list[PartitionSnapshot] = array(PartitionSnapshot)


@message(versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    cluster_id: str | None = string(nullable="0+", default=None, tag=0, tagged="0+")
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2147483647)
    topics: list[TopicSnapshot] = array(TopicSnapshot)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class PartitionSnapshotResponse:
    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = nested(SnapshotId)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, tag=0, tagged="0+")
    size: int = int64()
    position: int = int64()
    unaligned_records: Records = records()


@struct
class TopicSnapshotResponse:
    name: str = string()
    partitions: list[PartitionSnapshotResponse] = array(PartitionSnapshotResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicSnapshotResponse] = array(TopicSnapshotResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="1+", tag=0, tagged="1+")
