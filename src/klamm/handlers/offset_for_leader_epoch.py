"""OffsetForLeaderEpoch (2-4): where a leader epoch ended here, so that others find where their history parted from
ours.

Whether a replica asks or a consumer makes no difference: nothing is noted of who asks, and what is told is no more than
anybody may know. Our own followers hear it with their fetches.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import KafkaError
from klamm.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(request: OffsetForLeaderEpochRequest, call: Call) -> Answer:
    return Reply(
        OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[_end(topic.topic, wanted, call) for wanted in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _end(topic: str, wanted: OffsetForLeaderPartition, call: Call) -> EpochEndOffset:
    try:
        partition = call.broker.leading(topic, wanted.partition)
        partition.check_epoch(wanted.current_leader_epoch)
    except KafkaError as error:
        return EpochEndOffset(partition=wanted.partition, error_code=error.code)
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
