"""RemoveRaftVoter (0): one voter fewer for the metadata quorum, answered when that is committed."""

from klamm.broker.answer import Answer, Applied, Elsewhere, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS
from klamm.ids import Now
from klamm.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def handle(request: RemoveRaftVoterRequest, call: Call) -> Answer:
    quorum = call.broker.quorum
    if not quorum.is_leader:
        return Elsewhere()
    try:
        if request.cluster_id is not None and request.cluster_id != call.broker.cluster_id:
            raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID)
        offset = quorum.remove_voter(request.voter_id, request.voter_directory_id, call.now)
    except KafkaError as error:
        return Reply(RemoveRaftVoterResponse(error_code=error.code, error_message=error.message))

    def then(now: Now, in_time: bool) -> RemoveRaftVoterResponse:
        return RemoveRaftVoterResponse(error_code=ErrorCode.NONE if in_time else ErrorCode.REQUEST_TIMED_OUT)

    return Later(Applied(offset), call.now.monotonic_ms + BROKERS_WAITING_MS, then)
