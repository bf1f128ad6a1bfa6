"""ListGroups (key 16): the groups a broker coordinates.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct


@message(versions="0-5", flexible="3+")
class ListGroupsRequest:
    states_filter: list[str] = array(string(), versions="4+")
    types_filter: list[str] = array(string(), versions="5+")


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+")
    group_type: str = string(versions="5+")


@message(versions="0-5", flexible="3+")
class ListGroupsResponse:
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
