"""Envelope (key 58): a client's request that a broker passes on to the controller.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import bytes_, int16, message


@message(versions="0", flexible="0+")
class EnvelopeRequest:
    request_data: bytes = bytes_()
    request_principal: bytes | None = bytes_(nullable="0+")
    client_host_address: bytes = bytes_()


@message(versions="0", flexible="0+")
class EnvelopeResponse:
    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
