"""LeaveGroup (0-5): members leave a classic group; an administrator may name static ones by their instance id.

Up to version 2 it is one member, and its error is the response's. From 3 on each has its own.
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import LeaveWish, LeavingMember, LeftMember
from klamm.errors import KafkaError
from klamm.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

FIRST_VERSION_WITH_MANY = 3


def handle(request: LeaveGroupRequest, call: Call) -> Answer:
    if call.version >= FIRST_VERSION_WITH_MANY:
        members = [LeavingMember(each.member_id, each.group_instance_id) for each in request.members]
    else:
        members = [LeavingMember(request.member_id)]
    wish = LeaveWish(request.group_id, members)

    def respond(reply: object) -> LeaveGroupResponse:
        if isinstance(reply, KafkaError):
            return LeaveGroupResponse(error_code=reply.code)
        assert isinstance(reply, list)
        left: list[LeftMember] = reply
        if call.version < FIRST_VERSION_WITH_MANY:
            return LeaveGroupResponse(error_code=left[0].error)
        return LeaveGroupResponse(
            members=[
                MemberResponse(member_id=each.member_id, group_instance_id=each.instance_id, error_code=each.error)
                for each in left
            ]
        )

    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.leave(wish, ticket, now), respond, call.now
    )
