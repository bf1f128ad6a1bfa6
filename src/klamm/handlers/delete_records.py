"""DeleteRecords (0-2): move the beginning of partitions forward; what is before it is not served any more.

Offset -1 means the high watermark. Deleting beyond the watermark is OFFSET_OUT_OF_RANGE, deleting what is gone already
succeeds. The answer waits until every replica that is alive has moved its beginning, for any of them may lead next.
"""

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.controller.names import INTERNAL
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Offset
from klamm.partition.partition import Partition
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
    deletions: list[_Deletion] = []
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_deleted(topic.name, wanted, call, deletions) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if all(deletion.is_done() for deletion in deletions):
        return Reply(_told(response, deletions))
    for deletion in deletions:
        deletion.partition.start_is_watched = True
    return Later(
        until=Changed(
            [deletion.partition for deletion in deletions], lambda: all(deletion.is_done() for deletion in deletions)
        ),
        deadline_ms=call.now.monotonic_ms + max(0, request.timeout_ms),
        then=lambda now, in_time: _told(response, deletions),
    )


class _Deletion:
    """One partition whose replicas move their beginning."""

    __slots__ = ("offset", "partition", "result", "terms")

    def __init__(self, partition: Partition, offset: Offset, result: DeleteRecordsPartitionResult) -> None:
        self.partition = partition
        self.offset = offset
        self.result = result
        self.terms = partition.terms_ended

    def is_done(self) -> bool:
        return self.error() is not None or self.partition.low_watermark >= self.offset

    def error(self) -> ErrorCode | None:
        """Why it will not be done here."""
        if self.partition.deleted:
            return self.partition.why_gone
        if self.partition.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return None if self.partition.terms_ended == self.terms else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def tell(self) -> None:
        error = self.error()
        if error is None and self.partition.low_watermark < self.offset:
            error = ErrorCode.REQUEST_TIMED_OUT
        self.result.error_code = error or ErrorCode.NONE
        self.result.low_watermark = FAILED if error else self.partition.low_watermark


def _deleted(
    topic: str, wanted: DeleteRecordsPartition, call: Call, deletions: list[_Deletion]
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=FAILED)
    try:
        if topic in INTERNAL:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = call.broker.leading(topic, wanted.partition_index)
        if not partition.log.settings.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        offset = partition.high_watermark if wanted.offset == TO_HIGH_WATERMARK else wanted.offset
        if not 0 <= offset <= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        partition.advance_start_offset(offset)
        deletions.append(_Deletion(partition, offset, result))
    except KafkaError as error:
        result.error_code = error.code
    return result


def _told(response: DeleteRecordsResponse, deletions: list[_Deletion]) -> DeleteRecordsResponse:
    for deletion in deletions:
        deletion.tell()
    return response
