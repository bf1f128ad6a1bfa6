"""ListGroups (0-5): the groups that this broker coordinates; who wants all asks every broker.

From version 4 on only those in some states, from 5 on of some types: names are compared without regard to case.
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator import wishes
from klamm.errors import KafkaError
from klamm.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(request: ListGroupsRequest, call: Call) -> Answer:
    states = {each.lower() for each in request.states_filter}
    types = {each.lower() for each in request.types_filter}

    def respond(replies: list[object]) -> ListGroupsResponse:
        response = ListGroupsResponse()
        for reply in replies:
            if isinstance(reply, KafkaError):
                return ListGroupsResponse(error_code=reply.code)
            assert isinstance(reply, list)
            listed: list[wishes.ListedGroup] = reply
            response.groups += [
                ListedGroup(
                    group_id=each.group_id,
                    protocol_type=each.protocol_type,
                    group_state=each.state,
                    group_type=each.group_type,
                )
                for each in listed
                if (not states or each.state.lower() in states) and (not types or each.group_type.lower() in types)
            ]
        return response

    return call.broker.coordination.ask_all(lambda shard, ticket, now: shard.listed(ticket, now), respond, call.now)
