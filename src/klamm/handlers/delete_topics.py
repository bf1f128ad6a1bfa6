"""DeleteTopics (1-6): topics to remove, by name, or from version 6 on by id."""

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.controller.wishes import DeletedTopic, TopicToDelete
from klamm.errors import ErrorCode
from klamm.handlers.committing import when_committed
from klamm.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_BY_ID = 6


def handle(request: DeleteTopicsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    if call.version >= FIRST_VERSION_BY_ID:
        wishes = [TopicToDelete(topic.name, topic.topic_id) for topic in request.topics]
    else:
        wishes = [TopicToDelete(name) for name in request.topic_names]
    if not call.broker.config.boolean("delete.topic.enable"):
        code = ErrorCode.TOPIC_DELETION_DISABLED
        return Reply(_response([DeletedTopic(wish.name, wish.topic_id, code) for wish in wishes]))
    plan = controller.delete_topics(wishes)
    return when_committed(call, plan, request.timeout_ms, _response, is_users=True)


def _response(outcome: list[DeletedTopic]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=each.name, topic_id=each.topic_id, error_code=each.error, error_message=each.message
            )
            for each in outcome
        ]
    )
