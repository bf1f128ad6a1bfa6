"""InitProducerId (key 22): a producer's id and epoch; with a transactional id it fences the ones before.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import int16, int32, int64, message, string


@message(versions="0-5", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1)
    producer_epoch: int = int16(versions="3+", default=-1)


@message(versions="0-5", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
