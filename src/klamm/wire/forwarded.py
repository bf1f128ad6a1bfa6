"""What the controller answers to an Envelope, between nodes of ours: Kafka's response with one tagged field more.

The offset tells the broker that passed the request on how far its own metadata has to be before it gives the answer to
the client. Who does not know the tag, Kafka's own brokers among them, skips it.
"""

from klamm.codec.schema import bytes_, int16, int64, message


@message(versions="0", flexible="0+")
class ForwardedResponse:
    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
    metadata_offset: int = int64(default=-1, tag=20_000, tagged="0+")
