"""DescribeLogDirs (1-5): this broker's data directory, and how much each partition takes there. Topics null means
all.

As in Kafka, the directory has an error while it takes no writes, because its disk is full or all logs are offline, and
the lag of a log that is offline is not known, -1. Unlike Kafka's, the directory's partitions are listed all the same.
"""

from collections.abc import Iterator

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.storage import why_all_are_offline
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed, Space
from klamm.partition.partition import Partition
from klamm.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_LAG = -1
UNKNOWN_SPACE = Space(-1, -1)


def handle(request: DescribeLogDirsRequest, call: Call) -> Answer:
    broker = call.broker
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in _wanted(request, call):
        name, index = partition.topic_partition
        topic = topics.setdefault(name, DescribeLogDirsTopic(name=name, partitions=[]))
        is_offline = partition.failure is not None
        lag = UNKNOWN_LAG if is_offline else max(0, partition.high_watermark - partition.log.end_offset)
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=index, partition_size=partition.log.size_bytes, offset_lag=lag)
        )
    try:
        space = broker.files.space()
    except DiskFailed as error:
        broker.storage.note(error)
        space = UNKNOWN_SPACE
    can_write = broker.storage.full is None and why_all_are_offline(broker.partitions) is None
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE if can_write else ErrorCode.KAFKA_STORAGE_ERROR,
        log_dir=broker.config.log_dir,
        topics=list(topics.values()),
        total_bytes=space.total_bytes,
        usable_bytes=space.free_bytes,
    )
    return Reply(DescribeLogDirsResponse(results=[result]))


def _wanted(request: DescribeLogDirsRequest, call: Call) -> Iterator[Partition]:
    partitions = call.broker.partitions
    if request.topics is None:
        yield from partitions
        return
    for topic in request.topics:
        for index in topic.partitions:
            partition = partitions.get(topic.topic, index)
            if partition is not None:
                yield partition
