"""CreateTopics (2-7): new topics with partitions, replicas and settings, each judged by itself.

-1 partitions or replicas means the broker's default. `validate_only` decides and writes nothing. From version 5 on the
answer tells what was made: counts and every setting with its source.
"""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.config import describe_topic
from klamm.controller.wishes import CreatedTopic, NewTopic
from klamm.handlers.committing import when_committed
from klamm.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_VERSION_WITH_CONFIGS = 5


def handle(request: CreateTopicsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    decision = controller.create_topics([_wish(topic) for topic in request.topics], validate_only=request.validate_only)
    configs = {topic.name: {each.name: each.value or "" for each in topic.configs} for topic in request.topics}

    def response(outcome: list[CreatedTopic]) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[_result(each, configs[each.name], call) for each in outcome])

    return when_committed(call, decision, request.timeout_ms, response)


def _wish(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs=[(each.name, each.value) for each in topic.configs],
    )


def _result(created: CreatedTopic, configs: dict[str, str], call: Call) -> CreatableTopicResult:
    result = CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_code=created.error,
        error_message=created.message,
        num_partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=None if created.error else [],
    )
    if not created.error and call.version >= FIRST_VERSION_WITH_CONFIGS:
        result.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in describe_topic(call.broker.config, configs)
        ]
    return result
