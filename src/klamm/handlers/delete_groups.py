"""DeleteGroups (0-2): groups without members are gone, with their offsets."""

from functools import partial

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import Ticket, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from klamm.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(request: DeleteGroupsRequest, call: Call) -> Answer:
    names = list(dict.fromkeys(request.groups_names))

    def respond(replies: list[object]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(
                    group_id=group_id, error_code=reply.code if isinstance(reply, KafkaError) else ErrorCode.NONE
                )
                for group_id, reply in zip(names, replies, strict=True)
            ]
        )

    asked = [(group_id, partial(_delete, group_id)) for group_id in names]
    return call.broker.coordination.ask_each(asked, respond, call.now)


def _delete(group_id: str, shard: Shard, ticket: Ticket, now: Now) -> Verdict:
    return shard.delete(group_id, ticket, now)
