"""DescribeTopicPartitions (0): topics partition by partition, in pages, with the eligible leader replicas.

Without names it describes all topics. The answer holds at most `response_partition_limit` partitions (and at most our
own limit, `max.request.partition.size.limit`); `next_cursor` says where to go on.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.topics import leader_of, offline_replicas
from klamm.controller.names import topic_name_problem
from klamm.errors import ErrorCode
from klamm.handlers.operations import ON_TOPIC
from klamm.metadata.image import PartitionState, Topic
from klamm.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(request: DescribeTopicPartitionsRequest, call: Call) -> Answer:
    image = call.broker.image
    names = sorted({topic.name for topic in request.topics}) if request.topics else list(image.topics)
    cursor = request.cursor
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    most = call.broker.config.integer("max.request.partition.size.limit")
    room = max(1, min(request.response_partition_limit, most))
    response = DescribeTopicPartitionsResponse(topics=[])
    for name in names:
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        described = _described(topic, max(0, first), room, call)
        response.topics.append(described)
        room -= len(described.partitions)
        reached = max(0, first) + len(described.partitions)
        if reached < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=reached)
            break
        if room == 0 and name != names[-1]:
            response.next_cursor = Cursor(topic_name=names[names.index(name) + 1], partition_index=0)
            break
    return Reply(response)


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    invalid = topic_name_problem(name) is not None
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)


def _described(topic: Topic, first: int, room: int, call: Call) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in call.broker.internal_topics,
        topic_authorized_operations=ON_TOPIC,
        partitions=[
            _partition(index, state, call) for index, state in list(enumerate(topic.partitions))[first : first + room]
        ],
    )


def _partition(index: int, state: PartitionState, call: Call) -> DescribeTopicPartitionsResponsePartition:
    image = call.broker.image
    error, leader = leader_of(state, image, call.broker.absent.among(image, call.now))
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline_replicas(state, image),
    )
