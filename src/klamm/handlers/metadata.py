"""Metadata (0-13): which brokers there are, who leads which partition, and topics created on the way.

Topics null means all, an empty list none; in version 0 an empty list is all. From 12 on a topic may be asked for by id
alone. A name that does not exist is created where that is allowed (`auto.create.topics.enable`, the client's flag), and
answered with UNKNOWN_TOPIC_OR_PARTITION until it is there: clients ask again.

`controller_id` is this broker: every broker takes admin requests. While it is being found out whether another broker
died (`broker/absent.py`), the answer waits for that: who asks because it lost its leader should hear the news.
"""

from collections.abc import Generator, Iterable

from klamm.broker.absent import PATIENCE_MS
from klamm.broker.answer import Answer, Changed, Later
from klamm.broker.call import Call
from klamm.broker.topics import leader_of, offline_replicas
from klamm.controller.names import topic_name_problem
from klamm.errors import ErrorCode
from klamm.handlers import long_answer
from klamm.handlers.operations import ON_CLUSTER, ON_TOPIC
from klamm.ids import ZERO_UUID, Now, Uuid
from klamm.metadata.image import Image, PartitionState, Topic
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_VERSION_WITH_CREATION_FLAG = 4
FIRST_VERSION_BY_ID = 12
SLICE_PARTITIONS = 500


def handle(request: MetadataRequest, call: Call) -> Answer:
    absent = call.broker.absent
    if not absent.suspects:
        return long_answer.answer(_response(request, call), is_long=_is_long(request, call), now=call.now)
    return Later(
        until=Changed([absent], lambda: not absent.suspects),
        deadline_ms=call.now.monotonic_ms + PATIENCE_MS,
        then=lambda now, in_time: long_answer.made(_response(request, call)),
    )


def _is_long(request: MetadataRequest, call: Call) -> bool:
    """Whether there is more to tell than a slice should hold."""
    image = call.broker.image
    if request.topics is None or (call.version == 0 and not request.topics):
        return len(image.topics) > SLICE_PARTITIONS or _partitions(image.topics.values()) > SLICE_PARTITIONS
    named = (image.topics.get(wanted.name or "") for wanted in request.topics)
    return _partitions(topic for topic in named if topic is not None) > SLICE_PARTITIONS


def _partitions(topics: Iterable[Topic]) -> int:
    return sum(len(topic.partitions) for topic in topics)


def _response(request: MetadataRequest, call: Call) -> Generator[None, Now, MetadataResponse]:
    broker = call.broker
    image = broker.image
    topics = yield from _topics(request, call, image)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.broker_id, host=endpoint.host, port=endpoint.port, rack=each.rack)
            for each, endpoint in broker.known_brokers(also=broker.absent.lingering(call.now))
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_id(),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ON_CLUSTER
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code:
                topic.topic_authorized_operations = ON_TOPIC
    return response


def _topics(request: MetadataRequest, call: Call, image: Image) -> Generator[None, Now, list[MetadataResponseTopic]]:
    described = _Described(call, image)
    if request.topics is None or (call.version == 0 and not request.topics):
        found = []
        for topic in image.topics.values():
            found.append((yield from described.topic(topic)))
        return found
    answers: dict[str | Uuid, MetadataResponseTopic] = {}
    missing = []
    for wanted in request.topics:
        by_id = wanted.topic_id != ZERO_UUID
        if by_id and (wanted.name is not None or call.version < FIRST_VERSION_BY_ID):
            code = ErrorCode.INVALID_REQUEST
            answers[wanted.topic_id] = MetadataResponseTopic(
                error_code=code, name=wanted.name or "", topic_id=ZERO_UUID
            )
        elif by_id:
            if wanted.topic_id not in answers:
                answers[wanted.topic_id] = yield from _by_id(wanted, image, described)
        elif (name := wanted.name or "") not in answers:
            known = image.topics.get(name)
            if known is None:
                answers[name] = _missing(name)
                if answers[name].error_code != ErrorCode.INVALID_TOPIC_EXCEPTION:
                    missing.append(name)
            else:
                answers[name] = yield from described.topic(known)
    if missing and (request.allow_auto_topic_creation or call.version < FIRST_VERSION_WITH_CREATION_FLAG):
        for name, code in call.broker.create_automatically(list(dict.fromkeys(missing)), call.now).items():
            answers[name].error_code = code
    return list(answers.values())


def _by_id(
    wanted: MetadataRequestTopic, image: Image, described: "_Described"
) -> Generator[None, Now, MetadataResponseTopic]:
    topic = image.topic_with_id(wanted.topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=wanted.topic_id)
    return (yield from described.topic(topic))


def _missing(name: str) -> MetadataResponseTopic:
    invalid = topic_name_problem(name) is not None
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return MetadataResponseTopic(error_code=code, name=name)


class _Described:
    """Topics of one image as the answer shows them."""

    def __init__(self, call: Call, image: Image) -> None:
        self._image = image
        self._internal_topics = call.broker.internal_topics
        self._absent = call.broker.absent.among(image, call.now)
        self._left = SLICE_PARTITIONS

    def topic(self, topic: Topic) -> Generator[None, Now, MetadataResponseTopic]:
        partitions = []
        for index, state in enumerate(topic.partitions):
            partitions.append(self._partition(index, state))
            self._left -= 1
            if not self._left:
                yield
                self._left = SLICE_PARTITIONS
        return MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in self._internal_topics,
            partitions=partitions,
        )

    def _partition(self, index: int, state: PartitionState) -> MetadataResponsePartition:
        error, leader = leader_of(state, self._image, self._absent)
        return MetadataResponsePartition(
            error_code=error,
            partition_index=index,
            leader_id=leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            offline_replicas=offline_replicas(state, self._image),
        )
