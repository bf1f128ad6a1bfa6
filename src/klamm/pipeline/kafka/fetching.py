"""Fetching one range of one partition: whole answers, one after the other, each offset once.

The next fetch is asked for before the last answer is handed out, so records travel while others are decoded. The first
fetch is small and teaches how many bytes an offset has; the following ones ask for what is left of the range, up to
`fetch_bytes`, or for more where a batch is larger than that. The position only moves over answers that were handed out:
whatever fails in between, the same offset is asked for again, from whoever leads by then.
"""

import time
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from klamm.errors import RETRIABLE, ErrorCode, error_code
from klamm.ids import NO_BROKER, ZERO_UUID, TopicPartition
from klamm.pipeline.kafka.cluster import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Cluster, refused
from klamm.pipeline.kafka.connection import Connection
from klamm.pipeline.kafka.offsets import EARLIEST_LOCAL, GONE_SECONDS, listed
from klamm.pipeline.kafka.problems import EndNotReached, NoAnswer, OutOfRange, Refused, TopicGone, no_records
from klamm.pipeline.kafka.ranges import Range
from klamm.wire.apis import FETCH
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

LAST_VERSION_WITH_NAMES = 12
FIRST_FETCH_BYTES = 1 << 20
SPARE_BYTES = 64 << 10
MOST_FETCH_BYTES = 1 << 29

_unpack_batch = Struct(">qi11xi").unpack_from
_BATCH_BYTES, _OVERHEAD_BYTES = 27, 12


class Fetched(NamedTuple):
    records: memoryview
    """Whole batches, perhaps with a torn one behind them."""
    aborted: tuple[tuple[int, int], ...]
    """Producer id and first offset of transactions that were aborted, when reading what is committed."""
    position: int
    next_position: int


def next_position(records: memoryview) -> int | None:
    """The offset behind the last whole batch; None if there is none."""
    position, size, found = 0, len(records), None
    while position + _BATCH_BYTES <= size:
        base_offset, length, last_offset_delta = _unpack_batch(records, position)
        position += _OVERHEAD_BYTES + length
        if length < 0 or position > size:
            break
        found = base_offset + last_offset_delta + 1
    return found


class Fetcher:
    """`for fetched in Fetcher(cluster, piece): …`"""

    def __init__(self, cluster: Cluster, piece: Range) -> None:
        self._cluster = cluster
        self._piece = piece
        self.replica = NO_BROKER
        """The broker that the leader sent us to, if it did."""
        self._rack = cluster.settings.rack
        self._connection: Connection | None = None
        self._bytes_an_offset: float | None = None
        self._least_bytes = 0
        self._has_ended = False
        self._last_progress = time.monotonic()
        self._gone_since: float | None = None
        self._pause = FIRST_PAUSE_SECONDS

    def __iter__(self) -> Iterator[Fetched]:
        position = self._piece.start
        try:
            while position < self._piece.end and not self._has_ended:
                fetched = self._fetched(position)
                if fetched is None:
                    continue
                if fetched.next_position < self._piece.end:
                    self._ask_ahead(fetched.next_position)
                yield fetched
                position = fetched.next_position
                # Whoever took the answer may have taken long over it.
                self._last_progress = time.monotonic()
        finally:
            if self._connection is not None:
                self._cluster.forget(self._connection)

    def _fetched(self, position: int) -> Fetched | None:
        """The answer at `position`, or None where it has to be asked for again."""
        try:
            if self._connection is None:
                self._ask(position)
            assert self._connection is not None
            data = _partition(self._connection.receive())
            self._connection = None
        except NoAnswer as error:
            self._try_again(str(error))
            return None
        code = error_code(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and self.replica == NO_BROKER:
            raise OutOfRange(self._piece.topic, self._piece.partition, position)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE or code in RETRIABLE:
            self._try_again(code.name)
            return None
        if code != ErrorCode.NONE:
            raise refused(code, f"fetching {self._piece}")
        if data.preferred_read_replica >= 0 and self.replica != NO_BROKER:
            # Only a leader knows who is near. Two replicas that send us to each other would do so for ever.
            self._try_again(f"broker {self.replica} does not lead, and sends to broker {data.preferred_read_replica}")
            return None
        if data.preferred_read_replica >= 0:
            self.replica = data.preferred_read_replica
            return None
        return self._taken(data, position)

    def _taken(self, data: PartitionData, position: int) -> Fetched | None:
        records = memoryview(data.records or b"")
        following = next_position(records)
        if following is None or following <= position:
            self._note_nothing(data, position)
            return None
        self._bytes_an_offset = len(records) / (following - position)
        self._pause, self._gone_since = FIRST_PAUSE_SECONDS, None
        aborted = tuple((aborted.producer_id, aborted.first_offset) for aborted in data.aborted_transactions or ())
        return Fetched(records, aborted, position, following)

    def _ask(self, position: int) -> None:
        if self._cluster.seen is None or self._piece.topic not in self._cluster.seen.topics:
            self._look()
        broker = self._leader() if self.replica == NO_BROKER else self.replica
        connection = self._cluster.broker(broker)
        # From here on it is ours to close: it has an answer on its way.
        self._connection = connection
        names = self._piece.topic_id == ZERO_UUID
        version = connection.version(FETCH, LAST_VERSION_WITH_NAMES if names else None)
        connection.send(FETCH, self._request(position), version)

    def _ask_ahead(self, position: int) -> None:
        try:
            self._ask(position)
        except NoAnswer:
            # What was fetched is handed out first; then there is time to look for another broker.
            self._let_go()

    def _request(self, position: int) -> FetchRequest:
        piece, settings = self._piece, self._cluster.settings
        most = self._bytes_wanted(position)
        partition = FetchPartition(partition=piece.partition, fetch_offset=position, partition_max_bytes=most)
        return FetchRequest(
            replica_id=NO_BROKER,
            max_wait_ms=settings.fetch_wait_ms,
            min_bytes=settings.fetch_least_bytes,
            max_bytes=most,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(topic=piece.topic, topic_id=piece.topic_id, partitions=[partition])],
            rack_id=self._rack,
        )

    def _bytes_wanted(self, position: int) -> int:
        wanted = FIRST_FETCH_BYTES
        if self._bytes_an_offset is not None:
            wanted = int((self._piece.end - position) * self._bytes_an_offset * 1.05) + SPARE_BYTES
        return max(self._least_bytes, min(self._cluster.settings.fetch_bytes, wanted))

    def _leader(self) -> int:
        assert self._cluster.seen is not None
        topic = self._cluster.seen.topics.get(self._piece.topic)
        leader = NO_BROKER if topic is None else topic.leaders.get(self._piece.partition, NO_BROKER)
        if leader == NO_BROKER:
            raise NoAnswer(f"{self._piece.topic}-{self._piece.partition} has no leader")
        return leader

    def _note_nothing(self, data: PartitionData, position: int) -> None:
        """No whole batch, although the range goes on: torn, compacted away up to the log's end, or not yet there."""
        end = data.last_stable_offset if self._cluster.settings.read_committed else data.high_watermark
        if data.records:
            self._least_bytes = min(2 * self._bytes_wanted(position), MOST_FETCH_BYTES)
        elif end >= self._piece.end and self._is_local(position):
            self._has_ended = True
            return
        waited = time.monotonic() - self._last_progress
        if waited > self._cluster.settings.patience_seconds:
            if data.records or end >= self._piece.end:
                raise no_records(str(self._piece), waited, "no whole batch came")
            raise EndNotReached(self._piece.topic, self._piece.partition, position, self._piece.end)
        # A new leader may not know yet what is committed.
        self._sleep()

    def _is_local(self, position: int) -> bool:
        """Of what lies in remote storage (KIP-405) a broker that has no time to get it says nothing, and no error."""
        key = TopicPartition(self._piece.topic, self._piece.partition)
        try:
            return listed(self._cluster, {key: EARLIEST_LOCAL}).get(key, position + 1) <= position
        except Refused as refusal:
            # Older brokers have no remote storage, and no word for it.
            return refusal.code == ErrorCode.UNSUPPORTED_VERSION

    def _sleep(self) -> None:
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)

    def _try_again(self, problem: str) -> None:
        """Look around and pause; every time a little longer, until patience is over."""
        self._let_go()
        if self.replica != NO_BROKER:
            # A replica that failed us once is not asked again: from here on the leader has to do.
            self.replica, self._rack = NO_BROKER, ""
        waited = time.monotonic() - self._last_progress
        if waited > self._cluster.settings.patience_seconds:
            raise no_records(str(self._piece), waited, problem)
        self._sleep()
        try:
            self._look()
        except NoAnswer:
            return

    def _let_go(self) -> None:
        if self._connection is not None:
            self._cluster.forget(self._connection)
            self._connection = None

    def _look(self) -> None:
        """The metadata again; a topic that stays away, or is another one by now, is gone."""
        piece, now = self._piece, time.monotonic()
        seen = self._cluster.look_once([piece.topic])
        topic = seen.topics.get(piece.topic)
        is_other = topic is not None and piece.topic_id not in (ZERO_UUID, topic.topic_id)
        if seen.refused.get(piece.topic) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not is_other:
            self._gone_since = None
            return
        self._gone_since = self._gone_since or now
        if now - self._gone_since > GONE_SECONDS:
            fate = "was deleted and created again" if is_other else "was deleted"
            raise TopicGone(piece.topic, f"The topic {piece.topic} {fate} while {piece} was to be read.")


def _partition(response: FetchResponse) -> PartitionData:
    if response.error_code:
        raise NoAnswer(f"Fetch: {error_code(response.error_code).name}")
    for topic in response.responses:
        for partition in topic.partitions:
            return partition
    raise NoAnswer("Fetch: an answer without the partition that was asked for")
