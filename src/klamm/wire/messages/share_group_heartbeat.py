"""ShareGroupHeartbeat (key 76): a member of a share group is alive, and learns its partitions.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, nested, string, struct, uuid


@message(versions="1", flexible="1+")
class ShareGroupHeartbeatRequest:
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    rack_id: str | None = string(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string(), nullable="0+", default=None)


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    partitions: list[int] = array(int32())


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@message(versions="1", flexible="1+")
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable="0+", default=None)
