"""FindCoordinator (key 10): which broker looks after a group, a transactional id or a share partition.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int8, int16, int32, message, string, struct


@message(versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    key: str = string(versions="0-3")
    key_type: int = int8(versions="1+")
    coordinator_keys: list[str] = array(string(), versions="4+")


@struct
class Coordinator:
    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    throttle_time_ms: int = int32(versions="1+")
    error_code: int = int16(versions="0-3")
    error_message: str | None = string(versions="1-3", nullable="1-3")
    node_id: int = int32(versions="0-3")
    host: str = string(versions="0-3")
    port: int = int32(versions="0-3")
    coordinators: list[Coordinator] = array(Coordinator, versions="4+")
