"""ShareFetch (key 78): records acquired for a share consumer, with acknowledgements of earlier ones.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import (
    Records,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uuid,
)


@struct
class AcknowledgementBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    acknowledge_types: list[int] = array(int8())


@struct
class FetchPartition:
    partition_index: int = int32()
    acknowledgement_batches: list[AcknowledgementBatch] = array(AcknowledgementBatch)


@struct
class FetchTopic:
    topic_id: bytes = uuid()
    partitions: list[FetchPartition] = array(FetchPartition)


@struct
class ForgottenTopic:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


@message(versions="1-2", flexible="1+")
class ShareFetchRequest:
    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8(versions="2+")
    is_renew_ack: bool = boolean(versions="2+")
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class AcquiredRecords:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_count: int = int16()


@struct
class PartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acknowledge_error_code: int = int16()
    acknowledge_error_message: str | None = string(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch)
    records: Records = records()
    acquired_records: list[AcquiredRecords] = array(AcquiredRecords)


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(versions="1-2", flexible="1+")
class ShareFetchResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array(ShareFetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint)
