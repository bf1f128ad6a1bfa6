"""BrokerRegistration (0-4): a broker introduces itself to the controller, and gets its epoch."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.speaker import check_newcomer
from klamm.controller.brokers import BrokerRegistration, Registered
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS, once_committed
from klamm.metadata.image import Endpoint, FeatureRange
from klamm.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def handle(request: BrokerRegistrationRequest, call: Call) -> Answer:
    broker = call.broker
    if broker.controller is None:
        return Reply(BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER))
    registration = _registration(request)
    try:
        check_newcomer(call, request.broker_id, request.incarnation_id, registration.endpoints)
    except KafkaError as error:
        return Reply(BrokerRegistrationResponse(error_code=error.code))
    plan = broker.controller.register_broker(registration, lambda: broker.quorum.log.end_offset, call.now)

    def respond(registered: Registered | None, code: ErrorCode, message: str | None) -> BrokerRegistrationResponse:
        epoch = -1 if code or registered is None else registered.broker_epoch
        return BrokerRegistrationResponse(error_code=code, broker_epoch=epoch)

    return once_committed(call, plan, BROKERS_WAITING_MS, respond)


def _registration(request: BrokerRegistrationRequest) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        cluster_id=request.cluster_id,
        endpoints=[Endpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners],
        directories=request.log_dirs,
        features={
            each.name: FeatureRange(each.min_supported_version, each.max_supported_version) for each in request.features
        },
        rack=request.rack,
        previous_broker_epoch=request.previous_broker_epoch,
    )
