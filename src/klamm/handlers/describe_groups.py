"""DescribeGroups (0-6): classic groups with their members.

A group that does not exist is Dead up to version 5, and GROUP_ID_NOT_FOUND from 6 on. One of the newer protocol does
not exist for this API; ConsumerGroupDescribe shows it.
"""

from functools import partial

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import DescribedClassicGroup, Ticket, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.operations import NOT_ASKED, ON_GROUP
from klamm.ids import Now
from klamm.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_VERSION_WITH_NOT_FOUND = 6
DEAD = "Dead"


def handle(request: DescribeGroupsRequest, call: Call) -> Answer:
    operations = ON_GROUP if request.include_authorized_operations else NOT_ASKED

    def respond(replies: list[object]) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(
            groups=[
                _described(group_id, reply, call.version, operations)
                for group_id, reply in zip(request.groups, replies, strict=True)
            ]
        )

    asked = [(group_id, partial(_describe, group_id)) for group_id in request.groups]
    return call.broker.coordination.ask_each(asked, respond, call.now)


def _describe(group_id: str, shard: Shard, ticket: Ticket, now: Now) -> Verdict:
    return shard.describe_classic(group_id, ticket, now)


def _described(group_id: str, reply: object, version: int, operations: int) -> DescribedGroup:
    if isinstance(reply, KafkaError):
        if reply.code == ErrorCode.GROUP_ID_NOT_FOUND:
            found = version >= FIRST_VERSION_WITH_NOT_FOUND
            code, message = (reply.code, reply.message) if found else (ErrorCode.NONE, None)
            return DescribedGroup(error_code=code, error_message=message, group_id=group_id, group_state=DEAD)
        return DescribedGroup(error_code=reply.code, group_id=group_id)
    assert isinstance(reply, DescribedClassicGroup)
    return DescribedGroup(
        group_id=group_id,
        group_state=reply.state,
        protocol_type=reply.protocol_type,
        protocol_data=reply.protocol,
        members=[
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in reply.members
        ],
        authorized_operations=operations,
    )
