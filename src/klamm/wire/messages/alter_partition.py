"""AlterPartition (key 56): a partition's leader asks the controller to change the in-sync replicas.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int8, int16, int32, int64, message, struct, uuid


@struct
class BrokerState:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@struct
class PartitionData:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: list[int] = array(int32(), versions="2")
    new_isr_with_epochs: list[BrokerState] = array(BrokerState, versions="3+")
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class TopicData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@message(versions="2-3", flexible="2+")
class AlterPartitionRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: list[TopicData] = array(TopicData)


@struct
class PartitionDataResponse:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: list[int] = array(int32())
    leader_recovery_state: int = int8()
    partition_epoch: int = int32()


@struct
class TopicDataResponse:
    topic_id: bytes = uuid()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


@message(versions="2-3", flexible="2+")
class AlterPartitionResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: list[TopicDataResponse] = array(TopicDataResponse)
