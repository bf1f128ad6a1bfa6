"""CreateTopics (key 19): new topics with partitions, replicas and settings.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int8, int16, int32, message, string, struct, uuid


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(int32())


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@message(versions="2-7", flexible="5+")
class CreateTopicsRequest:
    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean()


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(default=-1)
    is_sensitive: bool = boolean()


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid(versions="7+")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    topic_config_error_code: int = int16(versions="5+", tag=0, tagged="5+")
    num_partitions: int = int32(versions="5+", default=-1)
    replication_factor: int = int16(versions="5+", default=-1)
    configs: list[CreatableTopicConfigs] | None = array(CreatableTopicConfigs, versions="5+", nullable="5+")


@message(versions="2-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = int32()
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
