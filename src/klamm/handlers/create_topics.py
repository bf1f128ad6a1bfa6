"""CreateTopics (2-7): new topics with partitions, replicas and settings, each judged by itself.

-1 partitions or replicas means the broker's default. `validate_only` decides and writes nothing. From version 5 on the
answer tells what was made: counts and every setting with its source.
"""

from collections.abc import Generator
from typing import TypeAlias

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.config import describe_topic
from klamm.controller.wishes import CreatedTopic, NewTopic
from klamm.handlers.committing import when_committed
from klamm.ids import Now
from klamm.slicing import Converted, Pace
from klamm.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_VERSION_WITH_CONFIGS = 5
Settings: TypeAlias = tuple[tuple[str, str], ...]


def handle(request: CreateTopicsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    wishes = Converted(request.topics, _wish)
    plan = controller.create_topics(wishes, validate_only=request.validate_only)

    def response(outcome: list[CreatedTopic]) -> Generator[None, Now, CreateTopicsResponse]:
        return _response(outcome, request.topics, call)

    return when_committed(call, plan, request.timeout_ms, response, is_users=True)


def _wish(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs=[(each.name, each.value) for each in topic.configs],
    )


def _response(
    outcome: list[CreatedTopic], wanted: list[CreatableTopic], call: Call
) -> Generator[None, Now, CreateTopicsResponse]:
    """Topics that were given the same settings share the list of them."""
    pace = Pace()
    settings: dict[str, Settings] = {}
    for topic in wanted:
        settings[topic.name] = tuple((each.name, each.value or "") for each in topic.configs)
        if pace.is_full():
            yield
    described: dict[Settings, list[CreatableTopicConfigs]] = {}
    topics = []
    for each in outcome:
        its = settings[each.name]
        if not each.error and its not in described and call.version >= FIRST_VERSION_WITH_CONFIGS:
            described[its] = _described(dict(its), call)
        topics.append(_result(each, described.get(its, [])))
        if pace.is_full():
            yield
    return CreateTopicsResponse(topics=topics)


def _result(created: CreatedTopic, configs: list[CreatableTopicConfigs]) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=created.name,
        topic_id=created.topic_id,
        error_code=created.error,
        error_message=created.message,
        num_partitions=created.partitions,
        replication_factor=created.replication_factor,
        configs=None if created.error else configs,
    )


def _described(configs: dict[str, str], call: Call) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in describe_topic(call.broker.config, configs)
    ]
