"""SaslAuthenticate (key 36): one round of a SASL conversation.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import bytes_, int16, int64, message, string


@message(versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    auth_bytes: bytes = bytes_()


@message(versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(versions="1+")
