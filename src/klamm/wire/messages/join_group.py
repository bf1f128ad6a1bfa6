"""JoinGroup (key 11): a member enters a classic group and waits for the others.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, bytes_, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@message(versions="0-9", flexible="6+")
class JoinGroupRequest:
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(versions="1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string(versions="8+", nullable="8+", default=None)


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(versions="5+", nullable="5+", default=None)
    metadata: bytes = bytes_()


@message(versions="0-9", flexible="6+")
class JoinGroupResponse:
    throttle_time_ms: int = int32(versions="2+")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="7+", default=None)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
