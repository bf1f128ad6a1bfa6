"""AllocateProducerIds (0): a broker takes a block of producer ids. The block is told when it is committed."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.speaker import check_speaker
from klamm.controller.producer_ids import ProducerIdBlock
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS, once_committed
from klamm.machine import in_one_piece
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(request: AllocateProducerIdsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Reply(AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER))
    try:
        check_speaker(call, request.broker_id)
        decision = controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        return Reply(AllocateProducerIdsResponse(error_code=error.code))

    def respond(block: ProducerIdBlock | None, code: ErrorCode, message: str | None) -> AllocateProducerIdsResponse:
        if code or block is None:
            return AllocateProducerIdsResponse(error_code=code)
        return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.count)

    return once_committed(call, in_one_piece(decision), BROKERS_WAITING_MS, respond)
