"""UnregisterBroker (0): a broker is gone for good. Its replicas stay assigned until they are moved."""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.handlers.committing import BROKERS_WAITING_MS, once_committed
from klamm.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(request: UnregisterBrokerRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    return once_committed(call, controller.unregister_broker(request.broker_id), BROKERS_WAITING_MS, _response)


def _response(outcome: None, code: ErrorCode, message: str | None) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=message)
