"""AlterPartitionReassignments (key 45): partitions shall move to other replicas, or stop moving.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, message, string, struct


@struct
class ReassignablePartition:
    partition_index: int = int32()
    replicas: list[int] | None = array(int32(), nullable="0+", default=None)


@struct
class ReassignableTopic:
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@message(versions="0-1", flexible="0+")
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = int32(default=60000)
    allow_replication_factor_change: bool = boolean(versions="1+", default=True)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@struct
class ReassignablePartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@struct
class ReassignableTopicResponse:
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@message(versions="0-1", flexible="0+")
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(versions="1+", default=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
