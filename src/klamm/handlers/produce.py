"""Produce (3-13): append batches, and answer as far as the client wants to wait.

acks=0 gets no answer at all; an error closes the connection, which is all such a client can notice. acks=1 waits for
this broker's log, acks=all for the high watermark. Up to version 12 topics have names, from 13 on ids. Batches travel
untouched, but they are looked at, header and records, before they are stored. Where that takes long (a megabyte may
decompress to a gigabyte) it goes on in slices, on a copy, and the connection waits: a batch does not overtake another.

Not the leader: the answer says who is (10+). With acks=all, too few in-sync replicas are NOT_ENOUGH_REPLICAS before the
batch is in the log, and NOT_ENOUGH_REPLICAS_AFTER_APPEND if they became too few while it waited for the others.

Left out: transactional batches (they come with the transaction coordinator) are refused.
"""

from collections.abc import Callable

from klamm.broker.answer import Again, Answer, Committed, Durable, Finished, Later, Reply, Silence
from klamm.broker.call import Call
from klamm.broker.slices import Work
from klamm.controller.names import INTERNAL
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.leaders import current_leader, leader_endpoints
from klamm.ids import NO_BROKER, BrokerId, Now, Offset
from klamm.log.log import Appended, RefusedRecords, TakesLong
from klamm.partition.partition import ALL, Partition
from klamm.records.batch import ATTRIBUTES_AT, CODEC_BITS, HEADER_BYTES, TRANSACTIONAL_BIT, read_header
from klamm.records.compression import Codec
from klamm.records.validation import Validation
from klamm.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_IDS = 13
LARGE_BYTES = 128 << 10
PATIENCE_MS = 600_000.0
"""Clients give up long before, and what they no longer wait for is not gone on with."""

ADMINISTRATOR = "__admin_client"
"""The client id under which Kafka lets tools write to topics of the brokers'."""


def handle(request: ProduceRequest, call: Call) -> Answer:
    acks = request.acks
    if acks not in (ALL, 0, 1):
        return Reply(_refused(request, ErrorCode.INVALID_REQUIRED_ACKS))
    if not call.broker.keeping.has_room and _may_take_long(request):
        return Again()
    waiting: list[_Unsafe] = []
    refused: list[PartitionProduceResponse] = []
    unlooked: list[_Unlooked] = []
    topics = [_append_topic(topic, acks, call, waiting, refused, unlooked) for topic in request.topic_data]
    response = ProduceResponse(responses=topics)
    if unlooked:
        return Later(
            until=Finished(_work(unlooked, acks, call, waiting, refused)),
            deadline_ms=call.now.monotonic_ms + PATIENCE_MS,
            then=lambda now, in_time: _when_appended(response, request, waiting, refused, call, now, in_time),
        )
    if acks == 0:
        return Silence(close=bool(refused))
    if not waiting:
        if refused:
            _name_leaders(response, call)
        return Reply(response)
    return _when_safe(response, request, waiting, refused, call, call.now)


def _when_safe(
    response: ProduceResponse,
    request: ProduceRequest,
    waiting: "list[_Unsafe]",
    refused: list[PartitionProduceResponse],
    call: Call,
    now: Now,
) -> Later:
    condition: type[Committed | Durable] = Durable if request.acks == 1 else Committed
    return Later(
        until=condition([(each.partition, each.end) for each in waiting]),
        deadline_ms=now.monotonic_ms + max(0, request.timeout_ms),
        then=_when_known(response, waiting, refused, condition, call),
    )


class _Unsafe:
    """A batch in the log that is not yet as safe as its producer wants it."""

    __slots__ = ("answer", "end", "partition", "terms")

    def __init__(self, partition: Partition, end: Offset, answer: PartitionProduceResponse) -> None:
        self.partition = partition
        self.end = end
        self.terms = partition.terms_ended
        self.answer = answer


class _Unlooked:
    """A batch, kept, whose records are still to be looked at, or one that came behind such a batch."""

    __slots__ = ("answer", "partition", "records", "validation")

    def __init__(
        self,
        partition: Partition,
        records: memoryview,
        answer: PartitionProduceResponse,
        validation: Validation | None,
    ) -> None:
        self.partition = partition
        self.records = memoryview(bytearray(records))
        self.answer = answer
        self.validation = validation
        if validation is not None:
            validation.keep(self.records)


def _may_take_long(request: ProduceRequest) -> bool:
    return any(
        data.records is not None
        and len(data.records) >= HEADER_BYTES
        and (len(data.records) > LARGE_BYTES or data.records[ATTRIBUTES_AT + 1] & CODEC_BITS)
        for topic in request.topic_data
        for data in topic.partition_data
    )


def _work(
    unlooked: list[_Unlooked],
    acks: int,
    call: Call,
    waiting: list[_Unsafe],
    refused: list[PartitionProduceResponse],
) -> Work:
    """Look at them, and append them, one after the other. It has begun, so that whoever drops it ends it."""
    work = _looking(unlooked, acks, call, waiting, refused)
    next(work)
    return work


def _looking(
    unlooked: list[_Unlooked],
    acks: int,
    call: Call,
    waiting: list[_Unsafe],
    refused: list[PartitionProduceResponse],
) -> Work:
    keeping = call.broker.keeping
    size = sum(len(each.records) for each in unlooked)
    keeping.keep(size)
    now = call.now
    try:
        for each in unlooked:
            yield None
            while True:
                try:
                    while each.validation is not None and not each.validation.step():
                        now = (yield None) or now
                    appended = each.partition.append(each.records, acks, now, validation=each.validation, may_wait=True)
                except TakesLong as long:
                    each.validation = long.validation
                    continue
                except KafkaError as error:
                    _refuse(each.answer, error)
                    refused.append(each.answer)
                else:
                    _take(each.answer, each.partition, appended, acks, waiting)
                break
            each.records = memoryview(b"")
    finally:
        keeping.let_go(size)


def _when_appended(
    response: ProduceResponse,
    request: ProduceRequest,
    waiting: list[_Unsafe],
    refused: list[PartitionProduceResponse],
    call: Call,
    now: Now,
    in_time: bool,
) -> object:
    """Those that were not looked at in time keep the answer they got first."""
    if request.acks == 0:
        return Silence(close=bool(refused) or not in_time)
    if waiting:
        later = _when_safe(response, request, waiting, refused, call, now)
        return later if in_time else later.then(now, False)
    if refused:
        _name_leaders(response, call)
    return response


def _append_topic(
    topic: TopicProduceData,
    acks: int,
    call: Call,
    waiting: list[_Unsafe],
    refused: list[PartitionProduceResponse],
    unlooked: list[_Unlooked],
) -> TopicProduceResponse:
    partitions = call.broker.partitions
    now = call.now
    if call.version >= FIRST_VERSION_WITH_IDS:
        found = partitions.by_id(topic.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        found = partitions.by_name(topic.name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = []
    for data in topic.partition_data:
        index = data.index
        partition = found[index] if found is not None and 0 <= index < len(found) else None
        if partition is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is not None else missing
            if current_leader(_name(topic, call), index, call.broker) != (-1, -1):
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            answer = _failed(index, error, None)
        elif partition.topic_partition.topic in INTERNAL and call.client_id != ADMINISTRATOR:
            answer = _failed(index, ErrorCode.INVALID_TOPIC_EXCEPTION, "this topic is the brokers' own")
        else:
            answer = _append(partition, index, data.records, acks, now, waiting, unlooked, call.version)
        answers.append(answer)
        if answer.error_code and answer.error_code != ErrorCode.REQUEST_TIMED_OUT:
            refused.append(answer)
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)


def _append(
    partition: Partition,
    index: int,
    records: memoryview | None,
    acks: int,
    now: Now,
    waiting: list[_Unsafe],
    unlooked: list[_Unlooked],
    version: int,
) -> PartitionProduceResponse:
    try:
        if records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "no records")
        if version < FIRST_VERSION_WITH_ZSTD:
            _check_codec(records)
        if len(records) >= HEADER_BYTES and records[ATTRIBUTES_AT + 1] & TRANSACTIONAL_BIT:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "there are no transactions here yet")
        if unlooked and any(each.partition is partition for each in unlooked):
            return _postponed(partition, index, records, None, unlooked)
        appended = partition.append(records, acks, now, may_wait=True)
    except TakesLong as long:
        assert records is not None
        return _postponed(partition, index, records, long.validation, unlooked)
    except KafkaError as error:
        answer = PartitionProduceResponse(index=index)
        _refuse(answer, error)
        return answer
    answer = PartitionProduceResponse(
        index=index,
        error_code=0,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_time_ms,
        log_start_offset=partition.log.start_offset,
    )
    _note_unsafe(answer, partition, appended, acks, waiting)
    return answer


def _postponed(
    partition: Partition, index: int, records: memoryview, validation: Validation | None, unlooked: list[_Unlooked]
) -> PartitionProduceResponse:
    """The answer to what is looked at later. It is what its producer hears if that never ends."""
    answer = _failed(index, ErrorCode.REQUEST_TIMED_OUT, None)
    unlooked.append(_Unlooked(partition, records, answer, validation))
    return answer


def _take(
    answer: PartitionProduceResponse, partition: Partition, appended: Appended, acks: int, waiting: list[_Unsafe]
) -> None:
    answer.error_code = 0
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.append_time_ms
    answer.log_start_offset = partition.log.start_offset
    _note_unsafe(answer, partition, appended, acks, waiting)


def _note_unsafe(
    answer: PartitionProduceResponse, partition: Partition, appended: Appended, acks: int, waiting: list[_Unsafe]
) -> None:
    end = appended.last_offset + 1
    if (partition.high_watermark if acks == ALL else partition.durable_end) < end:
        waiting.append(_Unsafe(partition, end, answer))


def _refuse(answer: PartitionProduceResponse, error: KafkaError) -> None:
    answer.error_code = error.code
    answer.error_message = error.message
    answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
    if isinstance(error, RefusedRecords):
        answer.record_errors = [BatchIndexAndErrorMessage(*each) for each in error.errors]


def _check_codec(records: memoryview) -> None:
    """A client that speaks an old version may have a reader of the same age beside it."""
    if len(records) >= HEADER_BYTES and read_header(records).attributes & CODEC_BITS == Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later")


def _when_known(
    response: ProduceResponse,
    waiting: list[_Unsafe],
    refused: list[PartitionProduceResponse],
    condition: type[Committed | Durable],
    call: Call,
) -> Callable[[Now, bool], ProduceResponse]:
    def then(now: Now, in_time: bool) -> ProduceResponse:
        for each in waiting:
            error = _error(each, condition)
            if error:
                each.answer.error_code = error
                each.answer.error_message = each.partition.failure
                each.answer.base_offset = -1
                refused.append(each.answer)
        if refused:
            _name_leaders(response, call)
        return response

    return then


def _error(unsafe: _Unsafe, condition: type[Committed | Durable]) -> ErrorCode:
    """Whether the batch is as safe as its producer wants it, and why not."""
    partition = unsafe.partition
    reached = partition.high_watermark if condition is Committed else partition.durable_end
    if partition.deleted:
        return partition.why_gone
    if partition.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.terms_ended != unsafe.terms:
        # It may have been led by others since, and cut. Whoever leads now will say to the retry.
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if reached >= unsafe.end:
        return ErrorCode.NONE
    if condition is Committed and not partition.can_commit:
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.REQUEST_TIMED_OUT


def _name(topic: TopicProduceData | TopicProduceResponse, call: Call) -> str | bytes:
    return topic.topic_id if call.version >= FIRST_VERSION_WITH_IDS else topic.name


def _name_leaders(response: ProduceResponse, call: Call) -> None:
    """To those who asked the wrong broker."""
    leaders: dict[BrokerId, None] = {}
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader, epoch = current_leader(_name(topic, call), answer.index, call.broker)
                answer.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                if leader != NO_BROKER:
                    leaders[leader] = None
    if leaders:
        response.node_endpoints = [NodeEndpoint(*each) for each in leader_endpoints(leaders, call.broker)]


def _failed(index: int, code: ErrorCode, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1, error_message=message
    )


def _refused(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[_failed(data.index, code, None) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )
