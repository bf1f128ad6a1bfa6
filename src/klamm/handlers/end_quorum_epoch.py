"""EndQuorumEpoch (0-1): the leader of the metadata quorum gives up, and names those who should stand."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import KafkaError
from klamm.handlers.quorum_messages import end_epoch, end_response
from klamm.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


def handle(request: EndQuorumEpochRequest, call: Call) -> Answer:
    try:
        told = end_epoch(request, call.version)
    except KafkaError as error:
        return Reply(EndQuorumEpochResponse(error_code=error.code))
    return Reply(end_response(call.broker.quorum.end_quorum_epoch(told, call.now)))
