"""LeaveGroup (key 13): members leave a classic group.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct


@struct
class MemberIdentity:
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", default=None)
    reason: str | None = string(versions="5+", nullable="5+", default=None)


@message(versions="0-5", flexible="4+")
class LeaveGroupRequest:
    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(MemberIdentity, versions="3+")


@struct
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+")
    error_code: int = int16()


@message(versions="0-5", flexible="4+")
class LeaveGroupResponse:
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, versions="3+")
