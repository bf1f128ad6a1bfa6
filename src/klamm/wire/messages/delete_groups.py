"""DeleteGroups (key 42): removes empty groups with their offsets.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, string, struct


@message(versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    groups_names: list[str] = array(string())


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@message(versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
