"""ReadShareGroupStateSummary (key 87): a share partition's stored state without the single records.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, string, struct, uuid


@struct
class PartitionData:
    partition: int = int32()
    leader_epoch: int = int32()


@struct
class ReadStateSummaryData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest:
    group_id: str = string()
    topics: list[ReadStateSummaryData] = array(ReadStateSummaryData)


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64()
    delivery_complete_count: int = int32(versions="1+", default=-1)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = array(ReadStateSummaryResult)
