"""BeginQuorumEpoch (0-1): somebody was elected to lead the metadata quorum, and says so."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import KafkaError
from klamm.handlers.quorum_messages import begin_epoch, begin_response
from klamm.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


def handle(request: BeginQuorumEpochRequest, call: Call) -> Answer:
    try:
        told = begin_epoch(request)
    except KafkaError as error:
        return Reply(BeginQuorumEpochResponse(error_code=error.code))
    return Reply(begin_response(call.broker.quorum.begin_quorum_epoch(told, call.now)))
