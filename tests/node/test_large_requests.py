"""A request that names very many things is answered as if it were short, only not in one step."""

from collections.abc import Iterator
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.node import large_requests
from klamm.node.events import Received
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.node.requests import batch_of, create
from tests.node.world import Client, World

PARTITIONS = 1_200
INDEXES = range(PARTITIONS)
TOPIC = "wide"


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    create(world.connect(), TOPIC, PARTITIONS)
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def topic(known: int) -> str:
    return TOPIC if known else "nowhere"


def list_offsets(count: int) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(count)]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=wanted)])


def fetch(count: int, **fields: Any) -> FetchRequest:
    wanted = [FetchPartition(partition=index, partition_max_bytes=1_000) for index in range(count)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    return FetchRequest(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 10**6, "topics": topics} | fields)


QUESTIONS: list[tuple[Any, int]] = [
    (list_offsets(PARTITIONS + 300), 8),
    (MetadataRequest(topics=None), 12),
    (MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]), 12),
    (
        MetadataRequest(
            allow_auto_topic_creation=False,
            topics=[MetadataRequestTopic(name=f"no-{n}") for n in range(3_000)],
        ),
        12,
    ),
    (FindCoordinatorRequest(coordinator_keys=[f"g{n}" for n in range(3_000)]), 4),
    (DescribeGroupsRequest(groups=[f"g{n}" for n in range(3_000)]), 5),
    (DeleteGroupsRequest(groups_names=[f"g{n}" for n in range(3_000)]), 2),
    (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name=f"no-{n}") for n in range(3_000)]
        ),
        4,
    ),
    (fetch(PARTITIONS + 300), 12),
    (fetch(PARTITIONS, session_epoch=-1), 12),
]


@pytest.mark.parametrize("request_, version", QUESTIONS, ids=lambda value: getattr(type(value), "__name__", value))
def test_the_answer_is_that_of_one_step(
    world: World, client: Client, request_: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), version=4)
    world.advance(1_000)
    in_slices = client.ask(request_, version=version)
    monkeypatch.setattr("klamm.node.dispatch.LARGE_BYTES", 10**9)
    for name in ("metadata.SLICE_PARTITIONS", "fetch_in_slices.SLICE_PARTITIONS", "fetch.SLICE_PARTITIONS"):
        monkeypatch.setattr(f"klamm.handlers.{name}", 10**9)
    assert client.ask(request_, version=version) == in_slices


def test_every_batch_of_a_large_produce_is_appended_once(world: World, client: Client) -> None:
    batch = bytes(batch_of(b"a"))
    data = [PartitionProduceData(index=index, records=batch) for index in INDEXES]
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])
    before = [world.partition(TOPIC, index).log.end_offset for index in INDEXES]
    (answer,) = client.ask(request, version=9).responses
    assert [each.index for each in answer.partition_responses] == list(INDEXES)
    assert all(each.error_code == ErrorCode.NONE for each in answer.partition_responses)
    assert [world.partition(TOPIC, index).log.end_offset for index in INDEXES] == [end + 1 for end in before]
    assert [each.base_offset for each in answer.partition_responses] == before


def test_offsets_of_a_large_commit_are_there(world: World, client: Client) -> None:
    client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), version=4)
    world.advance(1_000)
    wanted = [OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in INDEXES]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=wanted)]
    (committed,) = client.ask(OffsetCommitRequest(group_id="g", topics=topics), version=8).topics
    assert [each.error_code for each in committed.partitions] == [0] * PARTITIONS
    asked = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=list(INDEXES))]
    (found,) = client.ask(OffsetFetchRequest(group_id="g", topics=asked), version=7).topics
    assert [each.committed_offset for each in found.partitions] == list(INDEXES)


def test_others_are_answered_while_it_is_worked_on(world: World, client: Client) -> None:
    """One slice of the large request happens between any two requests of somebody else."""
    other = world.connect()
    settle, answered = world._settle, 0
    world._settle = lambda: None  # type: ignore[method-assign]
    try:
        client.post(list_offsets(PARTITIONS), version=8)
        while not client.answers:
            other.ask(ApiVersionsRequest())
            answered += 1
            world._perform(world.node.step(world._happened.popleft(), world.now))
    finally:
        world._settle = settle  # type: ignore[method-assign]
    assert answered > 4


def test_what_does_not_parse_closes_its_connection_also_in_a_later_slice(world: World, client: Client) -> None:
    client.post(list_offsets(2_000), version=8)
    client.take()
    frame = client._frames[0]
    world.step(Received(client.id, [memoryview(bytes(frame[:-20]))]))
    assert not client.is_open


# Fetches.


def test_a_large_session_is_opened_moved_on_and_forgotten(world: World) -> None:
    client = world.connect()
    opened = client.ask(fetch(PARTITIONS, session_epoch=0), version=12)
    assert opened.session_id and len(opened.responses[0].partitions) == PARTITIONS
    (session,) = [each for each in world.broker.sessions._sessions.values() if each.id == opened.session_id]
    again = fetch(PARTITIONS, session_id=opened.session_id, session_epoch=1)
    for partition in again.topics[0].partitions:
        partition.fetch_offset = 10**6
    moved = client.ask(again, version=12)
    assert [each.error_code for each in moved.responses[0].partitions] == [ErrorCode.OFFSET_OUT_OF_RANGE] * PARTITIONS
    forgotten = [ForgottenTopic(topic=TOPIC, partitions=list(range(PARTITIONS - 1)))]
    last = fetch(0, session_id=opened.session_id, session_epoch=2, topics=[], forgotten_topics_data=forgotten)
    (topic_,) = client.ask(last, version=12).responses
    assert [each.partition_index for each in topic_.partitions] == [PARTITIONS - 1]
    assert len(session.positions) == 1


def test_a_large_fetch_with_nothing_to_read_waits_and_is_woken(world: World) -> None:
    client, producer = world.connect(), world.connect()
    request = fetch(PARTITIONS, max_wait_ms=10_000)
    for partition in request.topics[0].partitions:
        partition.fetch_offset = world.partition(TOPIC, partition.partition).log.end_offset
    client.post(request, version=12)
    assert not client.answers and not world.broker.slices
    data = [PartitionProduceData(index=7, records=bytes(batch_of(b"a")))]
    producer.ask(ProduceRequest(acks=1, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]), version=9)
    (found,) = client.take().responses
    assert [each.partition_index for each in found.partitions if len(each.records)] == [7]


def test_a_large_fetch_with_nothing_to_read_ends_with_its_time(world: World) -> None:
    client = world.connect()
    request = fetch(PARTITIONS, max_wait_ms=500)
    for partition in request.topics[0].partitions:
        partition.fetch_offset = world.partition(TOPIC, partition.partition).log.end_offset
    client.post(request, version=12)
    world.advance(499)
    assert not client.answers
    world.advance(2)
    assert not any(len(each.records) for each in client.take().responses[0].partitions)


@pytest.fixture(autouse=True)
def all_work_ends(world: World) -> Iterator[None]:
    yield
    assert not world.broker.slices, "work that nobody waits for"


def test_the_table_names_apis_whose_elements_are_independent() -> None:
    assert set(large_requests.IN_PARTS) >= large_requests.QUESTIONS
