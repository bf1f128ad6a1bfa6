"""CreatePartitions (0-3): more partitions for topics there already are; a topic never gets fewer."""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.controller.wishes import GrownTopic, MorePartitions
from klamm.handlers.committing import when_committed
from klamm.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def handle(request: CreatePartitionsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    plan = controller.create_partitions([_wish(topic) for topic in request.topics], validate_only=request.validate_only)
    return when_committed(call, plan, request.timeout_ms, _response, is_users=True)


def _wish(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)


def _response(outcome: list[GrownTopic]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=each.name, error_code=each.error, error_message=each.message)
            for each in outcome
        ]
    )
