"""Answers to a fetch that bring no records: each means something else, and none is asked for a thousand times."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, TopicPartition
from klamm.pipeline.kafka.cluster import Cluster, ClusterSeen, TopicSeen
from klamm.pipeline.kafka.connection import Address
from klamm.pipeline.kafka.fetching import Fetcher
from klamm.pipeline.kafka.offsets import EARLIEST, listed
from klamm.pipeline.kafka.problems import EndNotReached, NoAnswer
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings
from klamm.records.builder import BatchBuilder
from klamm.wire.apis import FETCH, METADATA
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ONE, TWO, THREE = (Address("127.0.0.1", port) for port in (1, 2, 3))
SEEN = ClusterSeen("home", {1: ONE, 2: TWO, 3: THREE}, {"t": TopicSeen("t", b"\0" * 16, {0: 1})}, {})
PIECE = Range("t", 0, 0, 10)

Answer = Callable[[int, FetchRequest], PartitionData]


class Asked:
    """A broker's connection without a broker."""

    def __init__(self, owner: "Asking", address: Address) -> None:
        self.address = address
        self.has_unanswered = False
        self._owner = owner
        self._answers: deque[Any] = deque()

    def version(self, api_key: int, most: int | None = None) -> int:
        return 12

    def send(self, api_key: int, request: Any, version: int | None = None) -> None:
        self._answers.append(self._owner.answered(self.address.port, api_key, request))

    def receive(self) -> Any:
        return self._answers.popleft()

    def ask(self, api_key: int, request: Any, version: int | None = None) -> Any:
        self.send(api_key, request, version)
        return self.receive()

    def close(self) -> None: ...


class Asking(Cluster):
    """Three brokers, of which the first leads t-0. What they say to a fetch, the test says."""

    def __init__(self, answer: Answer, local_start: int | ErrorCode = 0, **settings: Any) -> None:
        super().__init__(ClusterSettings((ONE,), **{"patience_seconds": 0.2, **settings}))
        self.seen = SEEN
        self.fetches: list[tuple[int, FetchRequest]] = []
        self.looks = self.unknown_looks = 0
        self._answer, self._local_start = answer, local_start

    def connection(self, address: Address) -> Any:
        return Asked(self, address)

    def answered(self, broker: int, api_key: int, request: Any) -> Any:
        if api_key == METADATA:
            self.looks += 1
            if self.looks <= self.unknown_looks:
                unknown = MetadataResponseTopic(name="t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1)], topics=[unknown])
            partition = MetadataResponsePartition(partition_index=0, leader_id=1)
            brokers = [MetadataResponseBroker(node_id=i, host="127.0.0.1", port=i) for i in (1, 2, 3)]
            return MetadataResponse(brokers=brokers, topics=[MetadataResponseTopic(name="t", partitions=[partition])])
        if api_key == FETCH:
            self.fetches.append((broker, request))
            assert len(self.fetches) < 100, "asked again and again"
            data = self._answer(broker, request)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])
        assert isinstance(request, ListOffsetsRequest)
        code, offset = (
            (self._local_start, -1) if isinstance(self._local_start, ErrorCode) else (ErrorCode.NONE, self._local_start)
        )
        found = ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])


def nothing(end: int, stable: int | None = None) -> Answer:
    stable = end if stable is None else stable
    return lambda broker, request: PartitionData(high_watermark=end, last_stable_offset=stable, records=b"")


def batch(value: bytes) -> bytes:
    builder = BatchBuilder(base_offset=0)
    for _ in range(10):
        builder.append(None, value, 1)
    return bytes(builder.build())


@pytest.mark.parametrize("local_start", [0, ErrorCode.UNSUPPORTED_VERSION])
def test_what_was_compacted_away_up_to_the_end_is_no_loss(local_start: int) -> None:
    cluster = Asking(nothing(10), local_start)
    assert list(Fetcher(cluster, PIECE)) == [] and len(cluster.fetches) == 1
    committed = Asking(nothing(30, stable=10), local_start, read_committed=True)
    assert list(Fetcher(committed, PIECE)) == []


def test_what_lies_in_remote_storage_is_waited_for() -> None:
    """A broker that could not get it in time answers with nothing and no error, as if it were compacted away."""
    cluster = Asking(nothing(10), local_start=50)
    with pytest.raises(NoAnswer, match="no broker gave these records"):
        list(Fetcher(cluster, PIECE))
    assert 1 < len(cluster.fetches) < 10


@pytest.mark.parametrize(("end", "read_committed"), [(5, False), (20, True)])
def test_a_log_that_is_shorter_is_said_to_be(end: int, read_committed: bool) -> None:
    cluster = Asking(nothing(end, stable=5), read_committed=read_committed)
    with pytest.raises(EndNotReached):
        list(Fetcher(cluster, PIECE))
    assert 1 < len(cluster.fetches) < 10, "with a pause between them"


def test_a_batch_that_does_not_fit_is_asked_for_with_more_room() -> None:
    whole = batch(b"x" * 1000)

    def torn(broker: int, request: FetchRequest) -> PartitionData:
        return PartitionData(high_watermark=10, records=whole[: request.max_bytes])

    cluster = Asking(torn, fetch_bytes=2000, patience_seconds=10)
    (fetched,) = Fetcher(cluster, PIECE)
    assert bytes(fetched.records) == whole and fetched.next_position == 10
    assert [request.max_bytes for _, request in cluster.fetches] == [2000, 4000, 8000, 16000]


def test_a_batch_that_stays_torn_is_no_loss() -> None:
    cluster = Asking(lambda broker, request: PartitionData(high_watermark=10, records=batch(b"x")[:40]))
    with pytest.raises(NoAnswer, match="no whole batch came"):
        list(Fetcher(cluster, PIECE))
    assert 1 < len(cluster.fetches) < 10


def test_replicas_that_send_us_to_each_other() -> None:
    """The leader sends us to two, two to three, three to two: from then on the leader has to do."""

    def elsewhere(broker: int, request: FetchRequest) -> PartitionData:
        if broker == 1 and not request.rack_id:
            return PartitionData(high_watermark=10, records=batch(b"x"))
        return PartitionData(preferred_read_replica=2 if broker != 2 else 3, records=b"")

    cluster = Asking(elsewhere, rack="near", patience_seconds=10)
    fetcher = Fetcher(cluster, PIECE)
    assert [fetched.next_position for fetched in fetcher] == [10]
    assert [broker for broker, _ in cluster.fetches] == [1, 2, 1] and fetcher.replica == NO_BROKER


def test_offsets_of_a_partition_that_one_answer_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    key = TopicPartition("t", 0)
    cluster = Asking(nothing(10), local_start=7, patience_seconds=10)
    cluster.seen, cluster.unknown_looks = None, 2
    assert listed(cluster, {key: EARLIEST}) == {key: 7} and cluster.looks == 3
    monkeypatch.setattr("klamm.pipeline.kafka.offsets.GONE_SECONDS", 0.05)
    cluster.seen, cluster.unknown_looks = None, 100
    assert listed(cluster, {key: EARLIEST}) == {} and 4 < cluster.looks < 10
