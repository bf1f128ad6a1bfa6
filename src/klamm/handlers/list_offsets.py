"""ListOffsets (1-11): which offset a partition has at a time, at its beginning, at its end.

Special timestamps: -1 latest (the high watermark, or the last stable offset for read-committed readers), -2 earliest,
-3 the record with the largest timestamp, -4 earliest local, -5 last tiered, -6 earliest pending upload. Nothing is
tiered here, so -4 is the earliest and -5 and -6 find nothing. A time later than every record finds nothing: offset -1,
no error. A partition may be asked for once.

A new leader may know less of what is committed than its predecessor told people. Until its watermark has passed the
start of its epoch, an end it would have to take back is OFFSET_NOT_AVAILABLE (before version 5: LEADER_NOT_AVAILABLE).
"""

from collections import Counter

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Epoch, Offset
from klamm.partition.partition import Partition, storage_errors
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

READ_COMMITTED = 1
FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE = 5
FIRST_VERSION_WITH = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


def handle(request: ListOffsetsRequest, call: Call) -> Answer:
    asked = Counter((topic.name, wanted.partition_index) for topic in request.topics for wanted in topic.partitions)
    return Reply(
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        _answer(
                            topic.name,
                            wanted,
                            request.isolation_level == READ_COMMITTED,
                            call,
                            twice=asked[topic.name, wanted.partition_index] > 1,
                        )
                        for wanted in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    )


def _answer(
    topic: str, wanted: ListOffsetsPartition, read_committed: bool, call: Call, *, twice: bool
) -> ListOffsetsPartitionResponse:
    index = wanted.partition_index
    try:
        if twice:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        partition = call.broker.leading(topic, index)
        partition.check_epoch(wanted.current_leader_epoch)
        with storage_errors(partition):
            offset, timestamp, epoch = _found(partition, wanted.timestamp, read_committed, call.version)
    except KafkaError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
    return ListOffsetsPartitionResponse(
        partition_index=index, error_code=0, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


def _found(partition: Partition, timestamp: int, read_committed: bool, version: int) -> tuple[Offset, int, Epoch]:
    """Offset, timestamp and leader epoch; -1 for what does not apply."""
    log = partition.log
    end = partition.last_stable_offset if read_committed else partition.high_watermark
    if version < FIRST_VERSION_WITH.get(timestamp, 1):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if timestamp == LATEST:
        _check_end_is_known(partition, version)
        return end, -1, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return log.start_offset, -1, log.epochs.epoch_at(log.start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    if timestamp < MAX_TIMESTAMP:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_time(timestamp)
    if found is None or found[0] >= end:
        _check_end_is_known(partition, version)
        return -1, -1, -1
    return found


def _check_end_is_known(partition: Partition, version: int) -> None:
    if not partition.knows_its_watermark:
        is_told = version >= FIRST_VERSION_WITH_OFFSET_NOT_AVAILABLE
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if is_told else ErrorCode.LEADER_NOT_AVAILABLE)
