"""ExpireDelegationToken (key 40): a token shall end at a given time, or now.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import bytes_, int16, int32, int64, message


@message(versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()


@message(versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
