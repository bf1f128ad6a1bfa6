"""Produce (key 0): a producer's record batches, one for each partition.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import Records, array, int16, int32, int64, message, nested, records, string, struct, uuid


@struct
class PartitionProduceData:
    index: int = int32()
    records: Records = records(nullable="0+", default=None)


@struct
class TopicProduceData:
    name: str = string(versions="3-12")
    topic_id: bytes = uuid(versions="13+")
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@message(versions="3-13", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1)
    log_start_offset: int = int64(versions="5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, versions="8+")
    error_message: str | None = string(versions="8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, versions="10+", tag=0, tagged="10+")


@struct
class TopicProduceResponse:
    name: str = string(versions="3-12")
    topic_id: bytes = uuid(versions="13+")
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@message(versions="3-13", flexible="9+")
class ProduceResponse:
    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32()
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, versions="10+", tag=0, tagged="10+")
