"""ControllerRegistration (key 70): a controller introduces itself to the active one.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, message, string, struct, uint16, uuid


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class Feature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(versions="0", flexible="0+")
class ControllerRegistrationRequest:
    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


@message(versions="0", flexible="0+")
class ControllerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
