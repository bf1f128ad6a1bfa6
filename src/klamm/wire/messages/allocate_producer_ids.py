"""AllocateProducerIds (key 67): a broker takes a block of producer ids.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import int16, int32, int64, message


@message(versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@message(versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
