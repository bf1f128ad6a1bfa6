"""SaslHandshake (key 17): which SASL mechanism a connection will use.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, message, string


@message(versions="0-1")
class SaslHandshakeRequest:
    mechanism: str = string()


@message(versions="0-1")
class SaslHandshakeResponse:
    error_code: int = int16()
    mechanisms: list[str] = array(string())
