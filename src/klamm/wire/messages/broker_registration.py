"""BrokerRegistration (key 62): a broker introduces itself to the controller.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


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


@message(versions="0-4", flexible="0+")
class BrokerRegistrationRequest:
    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean(versions="1+")
    log_dirs: list[bytes] = array(uuid(), versions="2+")
    previous_broker_epoch: int = int64(versions="3+", default=-1)


@message(versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
