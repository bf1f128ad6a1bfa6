"""AddRaftVoter (0-1): one more voter for the metadata quorum, which has to follow the metadata log already.

Answered when the change is committed, or from version 1 on at once where that is asked for. Of several listeners the
first counts.
"""

from klamm.broker.answer import Answer, Applied, Elsewhere, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import LEAST_WAITING_MS
from klamm.ids import ZERO_UUID, Now
from klamm.quorum.voters import Voter
from klamm.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


def handle(request: AddRaftVoterRequest, call: Call) -> Answer:
    quorum = call.broker.quorum
    if not quorum.is_leader:
        return Elsewhere()
    try:
        offset = quorum.add_voter(_voter(request, call), call.now)
    except KafkaError as error:
        return Reply(AddRaftVoterResponse(error_code=error.code, error_message=error.message))
    if not request.ack_when_committed:
        return Reply(AddRaftVoterResponse())

    def then(now: Now, in_time: bool) -> AddRaftVoterResponse:
        return AddRaftVoterResponse(error_code=ErrorCode.NONE if in_time else ErrorCode.REQUEST_TIMED_OUT)

    return Later(Applied(offset), call.now.monotonic_ms + max(request.timeout_ms, LEAST_WAITING_MS), then)


def _voter(request: AddRaftVoterRequest, call: Call) -> Voter:
    if request.cluster_id is not None and request.cluster_id != call.broker.cluster_id:
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if request.voter_id < 0 or not request.listeners or not request.listeners[0].host:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A voter needs an id and a listener where it is reached.")
    if request.voter_directory_id == ZERO_UUID:
        # It would be recorded as whatever disk the node has: also as one that has forgotten its votes.
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A voter needs the id of its directory.")
    listener = request.listeners[0]
    return Voter(request.voter_id, request.voter_directory_id, listener.host, listener.port)
