"""Heartbeat (key 12): a member of a classic group is alive, and learns whether the group rebalances.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import int16, int32, message, string


@message(versions="0-4", flexible="4+")
class HeartbeatRequest:
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None)


@message(versions="0-4", flexible="4+")
class HeartbeatResponse:
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16()
