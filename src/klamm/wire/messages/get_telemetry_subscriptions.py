"""GetTelemetrySubscriptions (key 71): which metrics a client should send, and how often.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int8, int16, int32, message, string, uuid


@message(versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    client_instance_id: bytes = uuid()


@message(versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(int8())
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(string())
