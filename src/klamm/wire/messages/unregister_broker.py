"""UnregisterBroker (key 64): a broker is gone for good.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import int16, int32, message, string


@message(versions="0", flexible="0+")
class UnregisterBrokerRequest:
    broker_id: int = int32()


@message(versions="0", flexible="0+")
class UnregisterBrokerResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
