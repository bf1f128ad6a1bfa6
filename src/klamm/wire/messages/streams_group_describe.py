"""StreamsGroupDescribe (key 89): streams groups with topology, members and tasks.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, nested, string, struct, uint16


@message(versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    group_ids: list[str] = array(string())
    include_authorized_operations: bool = boolean()


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(string())
    repartition_sink_topics: list[str] = array(string())
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


@struct
class Topology:
    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(Subtopology, nullable="0+", default=None)


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class TaskOffset:
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@struct
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(int32())


@struct
class Assignment:
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


@struct
class Member:
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = nested(Topology, nullable="0+", default=None)
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@message(versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
