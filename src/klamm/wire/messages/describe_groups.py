"""DescribeGroups (key 15): classic groups with their members.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, bytes_, int16, int32, message, string, struct


@message(versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    groups: list[str] = array(string())
    include_authorized_operations: bool = boolean(versions="3+")


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(versions="4+", nullable="4+", default=None)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="6+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(versions="3+", default=-2147483648)


@message(versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    throttle_time_ms: int = int32(versions="1+")
    groups: list[DescribedGroup] = array(DescribedGroup)
