"""Vote (0-2): a candidate asks this voter of the quorum for its vote, or beforehand whether it would get it."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import KafkaError
from klamm.handlers.quorum_messages import vote_request, vote_response
from klamm.wire.messages.vote import VoteRequest, VoteResponse


def handle(request: VoteRequest, call: Call) -> Answer:
    try:
        asked = vote_request(request)
    except KafkaError as error:
        return Reply(VoteResponse(error_code=error.code))
    return Reply(vote_response(call.broker.quorum.vote(asked, call.now)))
