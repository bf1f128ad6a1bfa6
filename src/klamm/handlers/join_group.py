"""JoinGroup (0-9): a member enters a classic group, and waits until the others have, too.

From version 4 on a new member without an instance id is first given its id (MEMBER_ID_REQUIRED) and joins again with
it. Version 0 has one timeout for both purposes. From version 9 on a static leader that comes back may be told that it
need not assign. Where the group is one of the newer protocol, the coordinator assigns, and no member leads.
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import NO_GENERATION, Joined, JoinWish
from klamm.errors import KafkaError
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_THAT_GIVES_IDS = 4
FIRST_VERSION_WITH_NO_PROTOCOL = 7
FIRST_VERSION_THAT_SKIPS = 9


def handle(request: JoinGroupRequest, call: Call) -> Answer:
    has_both = call.version >= FIRST_VERSION_WITH_REBALANCE_TIMEOUT
    wish = JoinWish(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=call.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_both else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=[(each.name, bytes(each.metadata)) for each in request.protocols],
        must_know_its_id=call.version >= FIRST_VERSION_THAT_GIVES_IDS,
        can_skip_assignment=call.version >= FIRST_VERSION_THAT_SKIPS,
    )
    nothing = None if call.version >= FIRST_VERSION_WITH_NO_PROTOCOL else ""

    def respond(reply: object) -> JoinGroupResponse:
        if isinstance(reply, KafkaError):
            return JoinGroupResponse(
                error_code=reply.code,
                generation_id=NO_GENERATION,
                protocol_name=nothing,
                leader="",
                member_id=request.member_id,
            )
        assert isinstance(reply, Joined)
        return JoinGroupResponse(
            error_code=reply.error,
            generation_id=reply.generation,
            protocol_type=reply.protocol_type,
            protocol_name=nothing if reply.protocol_name is None else reply.protocol_name,
            leader=reply.leader,
            skip_assignment=reply.skip_assignment,
            member_id=reply.member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=each.member_id, group_instance_id=each.instance_id, metadata=each.metadata
                )
                for each in reply.members
            ],
        )

    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.join(wish, ticket, now), respond, call.now
    )
