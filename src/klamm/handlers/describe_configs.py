"""DescribeConfigs (1-4): every setting of topics and brokers, with its value, where that comes from, and its synonyms.

All settings are told, set or not: tools read them, change one and write them back. The broker without a name is the
cluster-wide default. Left out: groups, client metrics and broker loggers, which have no settings here.
"""

from collections.abc import Generator

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.config import ConfigEntry, describe_all_brokers, describe_broker, describe_topic
from klamm.controller.configs import is_broker_id
from klamm.controller.names import topic_name_problem
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers import long_answer
from klamm.ids import Now
from klamm.metadata.image import ResourceType
from klamm.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

MOST_SETTINGS = 100_000
"""In one answer: those of some three thousand topics."""

SLICE_RESOURCES = 20
"""Each has some forty settings, and each of those a few synonyms."""


def handle(request: DescribeConfigsRequest, call: Call) -> Answer:
    # A resource that is named twice is described once, as a set of resources would be.
    wanted = {(each.resource_type, each.resource_name): each for each in request.resources}
    described = _response(list(wanted.values()), request, call)
    return long_answer.answer(described, is_long=len(wanted) > SLICE_RESOURCES, now=call.now)


def _response(
    wanted: list[DescribeConfigsResource], request: DescribeConfigsRequest, call: Call
) -> Generator[None, Now, DescribeConfigsResponse]:
    response = DescribeConfigsResponse(results=[])
    room = MOST_SETTINGS
    for number, resource in enumerate(wanted, 1):
        result = _result(resource, request, call, room)
        room -= len(result.configs)
        response.results.append(result)
        if number % SLICE_RESOURCES == 0:
            yield
    return response


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, call: Call, room: int
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
    )
    try:
        if room <= 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"more than {MOST_SETTINGS} settings: ask for fewer at a time")
        result.configs = [_told(entry, request) for entry in _entries(resource, call)]
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = error.message
    return result


def _entries(resource: DescribeConfigsResource, call: Call) -> list[ConfigEntry]:
    name, keys = resource.resource_name, resource.configuration_keys
    broker = call.broker
    if resource.resource_type == ResourceType.TOPIC:
        problem = topic_name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in broker.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe_topic(broker.config, broker.image.topic_config(name), keys)
    if resource.resource_type == ResourceType.BROKER:
        if name == "":
            return describe_all_brokers(broker.config, keys)
        if name == str(broker.node_id):
            return describe_broker(broker.config, keys)
        if not is_broker_id(name):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"This is broker {broker.node_id}, ask broker {name} itself")
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Resources of type {resource.resource_type} have no settings here")


def _told(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    told = DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[],
        config_type=entry.kind,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if request.include_synonyms:
        told.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source) for each in entry.synonyms
        ]
    return told
