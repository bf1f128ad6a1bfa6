"""InitializeShareGroupState (key 83): the beginning of a share partition's stored state.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, string, struct, uuid


@struct
class PartitionData:
    partition: int = int32()
    state_epoch: int = int32()
    start_offset: int = int64()


@struct
class InitializeStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="0", flexible="0+")
class InitializeShareGroupStateRequest:
    group_id: str = string()
    topics: list[InitializeStateData] = array(InitializeStateData)


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class InitializeStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = array(InitializeStateResult)
