"""DescribeLogDirs (1-5): this broker's data directory, and how much each partition takes there. Topics null means
all."""

from collections.abc import Iterator

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.partition.partition import Partition
from klamm.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(request: DescribeLogDirsRequest, call: Call) -> Answer:
    broker = call.broker
    topics: dict[str, DescribeLogDirsTopic] = {}
    for partition in _wanted(request, call):
        name, index = partition.topic_partition
        topic = topics.setdefault(name, DescribeLogDirsTopic(name=name, partitions=[]))
        lag = max(0, partition.high_watermark - partition.log.end_offset)
        topic.partitions.append(
            DescribeLogDirsPartition(partition_index=index, partition_size=partition.log.size_bytes, offset_lag=lag)
        )
    space = broker.files.space()
    result = DescribeLogDirsResult(
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
