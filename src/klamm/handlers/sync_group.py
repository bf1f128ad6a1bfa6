"""SyncGroup (0-5): the leader of a classic group hands out what it assigned; everybody gets their own part.

Members wait for the leader. Where the group is one of the newer protocol, the coordinator has assigned already. While
the group is being loaded they are told to join again: whoever waited for the leader has to, and clients (Java's as
well) take the error for loading as fatal here.
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import Synced, SyncWish
from klamm.errors import ErrorCode, KafkaError
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(request: SyncGroupRequest, call: Call) -> Answer:
    wish = SyncWish(
        group_id=request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
    )
    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.sync(wish, ticket, now), _respond, call.now
    )


def _respond(reply: object) -> SyncGroupResponse:
    if isinstance(reply, KafkaError):
        is_loading = reply.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_loading else reply.code)
    assert isinstance(reply, Synced)
    return SyncGroupResponse(
        protocol_type=reply.protocol_type, protocol_name=reply.protocol_name, assignment=reply.assignment
    )
