"""UnregisterBroker (0): a broker is gone for good. Its replicas stay assigned until they are moved."""

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS, once_committed
from klamm.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    try:
        decision = controller.unregister_broker(request.broker_id)
    except KafkaError as error:
        return Reply(_response(error.code, error.message))
    return once_committed(call, decision.records, BROKERS_WAITING_MS, _response)


def _response(code: ErrorCode, message: str | None) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=message)
