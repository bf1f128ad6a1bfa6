"""DeleteShareGroupState (key 86): the end of a share partition's stored state.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct, uuid


@struct
class PartitionData:
    partition: int = int32()


@struct
class DeleteStateData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="0", flexible="0+")
class DeleteShareGroupStateRequest:
    group_id: str = string()
    topics: list[DeleteStateData] = array(DeleteStateData)


@struct
class PartitionResult:
    partition: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@struct
class DeleteStateResult:
    topic_id: bytes = uuid()
    partitions: list[PartitionResult] = array(PartitionResult)


@message(versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = array(DeleteStateResult)
