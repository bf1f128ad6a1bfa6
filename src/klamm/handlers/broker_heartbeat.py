"""BrokerHeartbeat (0-2): a broker is alive, has caught up so far, or wants to stop.

Left out: directories that failed or are cordoned, one by one. A node has one, and stops when it fails.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.speaker import check_has_fetched, check_speaker
from klamm.controller.brokers import BrokerHeartbeat, HeartbeatReply
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS, once_committed
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(request: BrokerHeartbeatRequest, call: Call) -> Answer:
    broker = call.broker
    if broker.controller is None:
        return Reply(BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER))
    beat = BrokerHeartbeat(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        metadata_offset=request.current_metadata_offset,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
    )
    try:
        check_speaker(call, request.broker_id)
        if not request.want_fence:
            check_has_fetched(call, request.broker_id)
    except KafkaError as error:
        return Reply(BrokerHeartbeatResponse(error_code=error.code))
    plan = broker.controller.heartbeat(beat, lambda: broker.quorum.log.end_offset, call.now)

    def respond(reply: HeartbeatReply | None, code: ErrorCode, message: str | None) -> BrokerHeartbeatResponse:
        if code or reply is None:
            return BrokerHeartbeatResponse(error_code=code)
        return BrokerHeartbeatResponse(
            is_caught_up=reply.is_caught_up, is_fenced=reply.is_fenced, should_shut_down=reply.should_shut_down
        )

    return once_committed(call, plan, BROKERS_WAITING_MS, respond)
