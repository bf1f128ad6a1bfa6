"""RenewDelegationToken (key 39): a token shall live longer.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import bytes_, int16, int32, int64, message


@message(versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    hmac: bytes = bytes_()
    renew_period_ms: int = int64()


@message(versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()
