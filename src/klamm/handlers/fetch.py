"""Fetch (4-18): committed records from given offsets on, now or as soon as there are enough.

A fetch waits until `min_bytes` can be read, a partition has an error, or `max_wait_ms` is over. The first batch is
given whole even if it is larger than asked for, so that nobody gets stuck on it. Within a session
(`broker/sessions.py`) only what changed is answered. Up to version 12 topics have names, from 13 on ids.

A position between the high watermark and the log's end has nothing to read yet; only outside the log is it
OFFSET_OUT_OF_RANGE. A client that tells the epoch of its last record hears where its history parted from ours.

Left out: followers and preferred read replicas (they come with replication).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.broker.sessions import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION, Key, Position, Session
from klamm.errors import ErrorCode, KafkaError
from klamm.partition.partition import Partition
from klamm.records.compression import Codec
from klamm.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FIRST_VERSION_WITH_ZSTD = 10
FIRST_VERSION_WITH_IDS = 13
READ_COMMITTED = 1
NOTHING = b""


def handle(request: FetchRequest, call: Call) -> Answer:
    try:
        fetch = _understood(request, call)
    except KafkaError as error:
        return Reply(FetchResponse(error_code=error.code, session_id=request.session_id))
    if fetch.answers_at_once():
        return Reply(fetch.response())
    return Later(
        until=Changed(fetch.subjects(), fetch.answers_at_once),
        deadline_ms=call.now.monotonic_ms + request.max_wait_ms,
        then=lambda now, in_time: fetch.response(),
    )


def _understood(request: FetchRequest, call: Call) -> "_Fetch":
    """Which partitions this fetch is about: its own, or those of its session."""
    sessions = call.broker.sessions
    by_id = call.version >= FIRST_VERSION_WITH_IDS
    wanted = list(_positions(request, by_id))
    session: Session | None = None
    if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
        sessions.close(request.session_id)
        if request.session_epoch == FIRST_EPOCH and wanted:
            session = sessions.open(by_id, wanted, call.now)
    else:
        session = sessions.resume(request.session_id, request.session_epoch, by_id, call.now)
        sessions.update(session, wanted, _forgotten(request, by_id))
    return _Fetch(
        call=call,
        by_id=by_id,
        session=session,
        incremental=session is not None and request.session_epoch != FIRST_EPOCH,
        positions=wanted,
        min_bytes=request.min_bytes,
        max_bytes=min(request.max_bytes, call.broker.fetch_max_bytes),
        waits=request.max_wait_ms > 0,
        read_committed=request.isolation_level == READ_COMMITTED,
    )


def _positions(request: FetchRequest, by_id: bool) -> Iterable[Position]:
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for wanted in topic.partitions:
            yield Position(
                name,
                wanted.partition,
                wanted.fetch_offset,
                wanted.partition_max_bytes,
                wanted.current_leader_epoch,
                wanted.last_fetched_epoch,
            )


def _forgotten(request: FetchRequest, by_id: bool) -> Iterable[Key]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic, index)


@dataclass(slots=True)
class _Fetch:
    call: Call
    by_id: bool
    session: Session | None
    incremental: bool
    positions: list[Position]
    min_bytes: int
    max_bytes: int
    waits: bool
    read_committed: bool

    def subjects(self) -> list[object]:
        """Whose change is worth another look."""
        if self.session is not None:
            return [self.session]
        return [position.partition for position in self.positions if position.partition is not None]

    def answers_at_once(self) -> bool:
        """Whether enough can be read, or something has to be told, right now."""
        if not self.waits or self.min_bytes <= 0:
            return True
        readable = 0
        something = False
        for position in self._candidates():
            something = True
            try:
                partition = self._attached(position)
                if partition.high_watermark > position.fetch_offset >= partition.log.start_offset:
                    if self.min_bytes == 1:
                        return True
                    readable += self._readable(partition, position)
                    if readable >= self.min_bytes:
                        return True
                elif self._has_news(partition, position):
                    return True
            except KafkaError:
                return True
        return not something and self.session is None

    def response(self) -> FetchResponse:
        topics: dict[object, FetchableTopicResponse] = {}
        left = self.max_bytes
        at_least_one = True
        for position in self._candidates():
            data = self._data(position, left, at_least_one=at_least_one)
            size = len(data.records)
            told = self._to_be_told(position, data)
            if size:
                left -= size
                at_least_one = False
            if not told:
                continue
            topic = topics.get(position.topic)
            if topic is None:
                topic = topics[position.topic] = FetchableTopicResponse(partitions=[])
                if self.by_id:
                    topic.topic_id = position.topic  # type: ignore[assignment]
                else:
                    topic.topic = position.topic  # type: ignore[assignment]
            topic.partitions.append(data)
        session_id = NO_SESSION if self.session is None else self.session.id
        return FetchResponse(session_id=session_id, responses=list(topics.values()))

    def _candidates(self) -> list[Position]:
        if self.session is None:
            return self.positions
        if not self.incremental:
            return list(self.session.positions.values())
        return [self.session.positions[key] for key in self.session.active]

    def _attached(self, position: Position) -> Partition:
        """The partition as it is now; the session hears of its changes from here on."""
        partition = _found(position, self.call, self.by_id)
        if self.session is not None:
            self.session.attach(position, partition)
        else:
            position.partition = partition
        partition.check_serving()
        partition.check_epoch(position.current_leader_epoch)
        return partition

    def _readable(self, partition: Partition, position: Position) -> int:
        return partition.read(position.fetch_offset, position.max_bytes, at_least_one=True).size

    def _has_news(self, partition: Partition, position: Position) -> bool:
        """Not records, but something the client has to hear: it is out of range, or parted from our history."""
        log = partition.log
        if not log.start_offset <= position.fetch_offset <= log.end_offset:
            return True
        return _diverging(partition, position) is not None

    def _data(self, position: Position, left: int, *, at_least_one: bool) -> PartitionData:
        data = PartitionData(partition_index=position.index, records=NOTHING, high_watermark=-1)
        if not self.read_committed:
            data.aborted_transactions = None
        try:
            partition = self._attached(position)
            if self.call.version < FIRST_VERSION_WITH_ZSTD and partition.log.settings.compression is Codec.ZSTD:
                raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            diverging = _diverging(partition, position)
            data.last_stable_offset = partition.last_stable_offset
            data.log_start_offset = partition.log.start_offset
            data.high_watermark = partition.high_watermark
            if diverging is not None:
                data.diverging_epoch = diverging
            elif left > 0 or at_least_one:
                size = min(position.max_bytes, left)
                found = partition.read(position.fetch_offset, size, at_least_one=at_least_one)
                if found.regions:
                    data.records = found.regions[0]
        except KafkaError as error:
            data.error_code = error.code
        return data

    def _to_be_told(self, position: Position, data: PartitionData) -> bool:
        """Whether the client does not know this yet. What has nothing to say any more leaves the active ones."""
        session = self.session
        if session is None:
            return True
        told = (
            not self.incremental
            or bool(data.error_code)
            or len(data.records) > 0
            or data.high_watermark != position.told_high_watermark
            or data.log_start_offset != position.told_start_offset
            or data.diverging_epoch.epoch >= 0
        )
        position.told_high_watermark = data.high_watermark
        position.told_start_offset = data.log_start_offset
        if data.error_code or len(data.records) or data.diverging_epoch.epoch >= 0:
            # At the end of the line, so that a busy partition does not starve the others.
            session.active.pop(position.key, None)
            session.active[position.key] = None
        elif data.high_watermark <= position.fetch_offset:
            session.active.pop(position.key, None)
        return told


def _found(position: Position, call: Call, by_id: bool) -> Partition:
    partitions = call.broker.partitions
    if by_id:
        found = partitions.by_id(position.topic)  # type: ignore[arg-type]
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        found = partitions.by_name(position.topic)  # type: ignore[arg-type]
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = found[position.index] if 0 <= position.index < len(found) else None
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition


def _diverging(partition: Partition, position: Position) -> EpochEndOffset | None:
    """Where the client's history parted from ours, if it did: its last epoch ended earlier here, or is unknown."""
    last = position.last_fetched_epoch
    if last < 0:
        return None
    epoch, end = partition.log.end_offset_for_epoch(last)
    if epoch < 0 or end < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last or end < position.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
