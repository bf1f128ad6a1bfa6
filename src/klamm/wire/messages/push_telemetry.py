"""PushTelemetry (key 72): a client's metrics.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import boolean, bytes_, int8, int16, int32, message, uuid


@message(versions="0", flexible="0+")
class PushTelemetryRequest:
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
