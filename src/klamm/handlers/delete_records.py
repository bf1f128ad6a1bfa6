"""DeleteRecords (0-2): move the beginning of partitions forward; what is before it is not served any more.

Offset -1 means the high watermark. Deleting beyond the watermark is OFFSET_OUT_OF_RANGE, deleting what is gone already
succeeds. The answer waits for nobody, because this broker is the only replica.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Offset
from klamm.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

TO_HIGH_WATERMARK = -1
FAILED: Offset = -1


def handle(request: DeleteRecordsRequest, call: Call) -> Answer:
    return Reply(
        DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[_deleted(topic.name, wanted, call) for wanted in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    )


def _deleted(topic: str, wanted: DeleteRecordsPartition, call: Call) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        partition = call.broker.leading(topic, index)
        if not partition.log.settings.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = partition.high_watermark if wanted.offset == TO_HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        partition.advance_start_offset(offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=FAILED, error_code=error.code)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.log.start_offset, error_code=0)
