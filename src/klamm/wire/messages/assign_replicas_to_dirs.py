"""AssignReplicasToDirs (key 73): a broker tells the controller in which directory its replicas are.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, int64, message, struct, uuid


@struct
class PartitionData:
    partition_index: int = int32()


@struct
class TopicData:
    topic_id: bytes = uuid()
    partitions: list[PartitionData] = array(PartitionData)


@struct
class DirectoryData:
    id: bytes = uuid()
    topics: list[TopicData] = array(TopicData)


@message(versions="0", flexible="0+")
class AssignReplicasToDirsRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    directories: list[DirectoryData] = array(DirectoryData)


@struct
class PartitionDataResponse:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class TopicDataResponse:
    topic_id: bytes = uuid()
    partitions: list[PartitionDataResponse] = array(PartitionDataResponse)


@struct
class DirectoryDataResponse:
    id: bytes = uuid()
    topics: list[TopicDataResponse] = array(TopicDataResponse)


@message(versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    directories: list[DirectoryDataResponse] = array(DirectoryDataResponse)
