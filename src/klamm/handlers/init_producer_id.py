"""InitProducerId (0-5): an id and epoch for an idempotent producer.

Ids come in blocks of a thousand from the controller, so that most answers wait for nobody. Left out:
transactional ids, which come with the transaction coordinator and are refused until then.
"""

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.ids import NO_PRODUCER, Now
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

MOST_WAITING_MS = 30_000.0


def handle(request: InitProducerIdRequest, call: Call) -> Answer:
    if request.transactional_id is not None:
        code = (
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED if request.transactional_id else ErrorCode.INVALID_REQUEST
        )
        return Reply(InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER, producer_epoch=-1))
    if (request.producer_id == NO_PRODUCER) != (request.producer_epoch == -1):
        return Reply(
            InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=NO_PRODUCER, producer_epoch=-1)
        )
    ids = call.broker.producer_ids
    producer_id = ids.next_id()
    if producer_id is not None:
        return Reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    def then(now: Now, in_time: bool) -> InitProducerIdResponse:
        taken = ids.next_id()
        if taken is None:
            code = ids.refusal or ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER, producer_epoch=-1)
        return InitProducerIdResponse(producer_id=taken, producer_epoch=0)

    call.broker.take_producer_ids(call.now)
    if ids.is_settled:
        return Reply(then(call.now, True))
    return Later(Changed([ids], lambda: ids.is_settled), call.now.monotonic_ms + MOST_WAITING_MS, then)
