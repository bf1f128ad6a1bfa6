"""ShareGroupDescribe (key 77): share groups with their members.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, message, nested, string, struct, uuid


@message(versions="1", flexible="1+")
class ShareGroupDescribeRequest:
    group_ids: list[str] = array(string())
    include_authorized_operations: bool = boolean()


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32())


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@struct
class Member:
    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string())
    assignment: Assignment = nested(Assignment)


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-2147483648)


@message(versions="1", flexible="1+")
class ShareGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
