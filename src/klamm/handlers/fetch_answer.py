"""What a fetch is answered with: the partitions it is about, what can be read of them, and when that is enough.

`FetchAnswer` is a consumer's: it reads below the high watermark. What a follower's does otherwise is in
`fetch_by_follower.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from klamm.broker.call import Call
from klamm.broker.sessions import NO_SESSION, Position, Session
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.leaders import current_leader, leader_endpoints
from klamm.ids import NO_BROKER, BrokerId, Epoch, Offset
from klamm.partition.partition import Partition
from klamm.records.compression import Codec
from klamm.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

FIRST_VERSION_WITH_ZSTD = 10
FIRST_VERSION_WITH_READING_FROM_FOLLOWERS = 11
NOTHING = b""
LEADER_IS_ANOTHER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Found:
    """What a look at the partitions has come to so far."""

    __slots__ = ("at_least_one", "has_news", "left", "size_bytes", "topics")

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.at_least_one = True
        self.size_bytes = 0
        self.has_news = False
        """Whether anything but records has to be told at once."""
        self.topics: dict[object, FetchableTopicResponse] = {}


@dataclass(slots=True)
class FetchAnswer:
    call: Call
    by_id: bool
    session: Session | None
    incremental: bool
    positions: list[Position]
    min_bytes: int
    max_bytes: int
    waits: bool
    read_committed: bool
    rack: str = ""
    """Where the consumer is, if it may be sent to a replica near it."""
    leaders: dict[BrokerId, None] = field(default_factory=dict)
    """Who leads what we could not serve, so that the client need not ask."""

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
        for position in self.candidates():
            something = True
            try:
                partition = self._attached(position)
                if self.rack and self._nearer_replica(partition, position) != NO_BROKER:
                    return True
                if partition.high_watermark > position.fetch_offset >= partition.log.start_offset:
                    if self.min_bytes == 1:
                        return True
                    readable += partition.read(position.fetch_offset, position.max_bytes, at_least_one=True).size
                    if readable >= self.min_bytes:
                        return True
                elif self._has_news(partition, position):
                    return True
            except KafkaError:
                return True
        return not something and self.session is None

    def note_positions(self, request: FetchRequest) -> None:
        """What these positions tell: a consumer's nothing."""

    def response(self) -> FetchResponse:
        found = Found(self.max_bytes)
        self.look(self.candidates(), found)
        return self.told(found)

    def look(self, candidates: Sequence[Position], found: Found) -> None:
        topics = found.topics
        for position in candidates:
            data = self._data(position, found.left, at_least_one=found.at_least_one)
            size = len(data.records)
            told = self._to_be_told(position, data)
            if size:
                found.left -= size
                found.size_bytes += size
                found.at_least_one = False
            if not told:
                continue
            if data.error_code or data.diverging_epoch.epoch >= 0 or data.preferred_read_replica != NO_BROKER:
                found.has_news = True
            topic = topics.get(position.topic)
            if topic is None:
                topic = topics[position.topic] = FetchableTopicResponse(partitions=[])
                if self.by_id:
                    topic.topic_id = position.topic  # type: ignore[assignment]
                else:
                    topic.topic = position.topic  # type: ignore[assignment]
            topic.partitions.append(data)

    def is_enough(self, found: Found) -> bool:
        """To be answered now. A session that has been looked at counts as told of what was found, so it must be; one
        that begins is better told at once which number it has."""
        if not self.waits or found.size_bytes >= self.min_bytes or found.has_news:
            return True
        return self.session is not None and (bool(found.topics) or not self.incremental)

    def told(self, found: Found) -> FetchResponse:
        session_id = NO_SESSION if self.session is None else self.session.id
        response = FetchResponse(session_id=session_id, responses=list(found.topics.values()))
        if self.leaders:
            response.node_endpoints = [NodeEndpoint(*each) for each in leader_endpoints(self.leaders, self.call.broker)]
        return response

    def candidates(self) -> list[Position]:
        if self.session is None:
            return self.positions
        if not self.incremental:
            return list(self.session.positions.values())
        return [self.session.positions[key] for key in self.session.active]

    def _attached(self, position: Position) -> Partition:
        """The partition as it is now, if this client may read it here."""
        partition = self._found(position)
        if partition.leader == partition.me or self.call.version < FIRST_VERSION_WITH_READING_FROM_FOLLOWERS:
            partition.check_serving()
        else:
            partition.check_reading()
        partition.check_epoch(position.current_leader_epoch)
        return partition

    def _found(self, position: Position) -> Partition:
        """The partition, whoever may read it; the session hears of its changes from here on."""
        partition = position.partition
        if partition is None or partition.deleted:
            partition = found_partition(position.topic, position.index, self.call, self.by_id)
            if self.session is not None:
                self.session.attach(position, partition)
            else:
                position.partition = partition
        return partition

    def _has_news(self, partition: Partition, position: Position) -> bool:
        """Not records, but something the client has to hear: it is out of range, or parted from our history."""
        log = partition.log
        if not log.start_offset <= position.fetch_offset <= log.end_offset:
            return True
        return diverging(partition, position.last_fetched_epoch, position.fetch_offset) is not None

    def _data(self, position: Position, left: int, *, at_least_one: bool) -> PartitionData:
        data = PartitionData(partition_index=position.index, records=NOTHING, high_watermark=-1)
        if not self.read_committed:
            data.aborted_transactions = None
        try:
            partition = self._attached(position)
            if self.call.version < FIRST_VERSION_WITH_ZSTD and partition.log.settings.compression is Codec.ZSTD:
                raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            data.last_stable_offset = partition.last_stable_offset
            data.log_start_offset = partition.log.start_offset
            data.high_watermark = partition.high_watermark
            self._read(partition, position, data, left, at_least_one)
        except KafkaError as error:
            data.error_code = error.code
            if error.code in LEADER_IS_ANOTHER:
                self._name_leader(position, data)
        return data

    def _read(
        self, partition: Partition, position: Position, data: PartitionData, left: int, at_least_one: bool
    ) -> None:
        """Into `data`: records, or where the client's history parted from ours, or who is nearer to it."""
        if self.rack:
            data.preferred_read_replica = self._nearer_replica(partition, position)
            if data.preferred_read_replica != NO_BROKER:
                return
        parted = diverging(partition, position.last_fetched_epoch, position.fetch_offset)
        if parted is not None:
            if partition.leading is None:
                # A follower may merely be behind, or not have been cut yet. The leader knows, and is asked next.
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            data.diverging_epoch = parted
        elif left > 0 or at_least_one:
            size = min(position.max_bytes, left)
            found = partition.read(position.fetch_offset, size, at_least_one=at_least_one)
            if found.regions:
                data.records = found.regions[0]
                partition.traffic.bytes_out += found.size

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
            or data.preferred_read_replica != NO_BROKER
        )
        # Who is told that its history parted from ours has other worries than where the watermark is.
        has_parted = data.diverging_epoch.epoch >= 0
        position.told_high_watermark = -1 if has_parted else data.high_watermark
        position.told_start_offset = -1 if has_parted else data.log_start_offset
        if data.error_code or len(data.records) or data.diverging_epoch.epoch >= 0:
            # At the end of the line, so that a busy partition does not starve the others.
            session.active.pop(position.key, None)
            session.active[position.key] = None
        elif self._is_at_the_end(position, data):
            session.active.pop(position.key, None)
        return told

    def _is_at_the_end(self, position: Position, data: PartitionData) -> bool:
        """Whether there is nothing more to read until something changes."""
        return data.high_watermark <= position.fetch_offset

    def _nearer_replica(self, partition: Partition, position: Position) -> BrokerId:
        """An in-sync follower in the consumer's rack that has what it wants, if we are not there (KIP-392)."""
        brokers = self.call.broker.image.brokers
        if partition.leading is None or brokers[partition.me].rack == self.rack:
            return NO_BROKER
        offset = position.fetch_offset
        near = [
            (-follower.end_offset, follower.broker_id)
            for follower in partition.leading.followers.values()
            if follower.start_offset <= offset <= follower.end_offset
            and follower.broker_id in partition.in_sync
            and follower.broker_id in brokers
            and brokers[follower.broker_id].is_active
            and brokers[follower.broker_id].rack == self.rack
        ]
        return min(near)[1] if near else NO_BROKER

    def _name_leader(self, position: Position, data: PartitionData) -> None:
        leader, epoch = current_leader(position.topic, position.index, self.call.broker)
        data.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        if leader != NO_BROKER:
            self.leaders[leader] = None


def found_partition(topic: str | bytes, index: int, call: Call, by_id: bool) -> Partition:
    """The partition by its topic's name or id, if it is held here."""
    partitions = call.broker.partitions
    found = partitions.by_id(topic) if by_id else partitions.by_name(topic)  # type: ignore[arg-type]
    partition = found[index] if found is not None and 0 <= index < len(found) else None
    if partition is not None:
        return partition
    image = call.broker.image
    known = image.topic_with_id(topic) if by_id else image.topics.get(topic)  # type: ignore[arg-type]
    if known is not None and 0 <= index < len(known.partitions):
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID if by_id and known is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def diverging(partition: Partition, last_epoch: Epoch, fetch_offset: Offset) -> EpochEndOffset | None:
    """Where the client's history parted from ours, if it did: its last epoch ended earlier here, or is unknown."""
    if last_epoch < 0:
        return None
    epoch, end = partition.log.end_offset_for_epoch(last_epoch)
    if epoch < 0 or end < 0 or fetch_offset < partition.log.start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last_epoch or end < fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end)
    return None
