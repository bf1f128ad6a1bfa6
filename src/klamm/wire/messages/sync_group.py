"""SyncGroup (key 14): the leader of a classic group hands out the assignment, members receive theirs.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, bytes_, int16, int32, message, string, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = bytes_()


@message(versions="0-5", flexible="4+")
class SyncGroupRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@message(versions="0-5", flexible="4+")
class SyncGroupResponse:
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="5+", default=None)
    protocol_name: str | None = string(versions="5+", nullable="5+", default=None)
    assignment: bytes = bytes_()
