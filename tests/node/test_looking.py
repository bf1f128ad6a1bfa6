"""Records of a produced batch are looked at before it is stored; where that takes long, others are served meanwhile,
and nothing overtakes it."""

from typing import Any

import pytest

from klamm.broker.facts import CompactionFailed, CompactionPassedOver
from klamm.errors import ErrorCode
from klamm.node.events import Yielded
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.node.requests import NAMED, acknowledged, batch_of, create, produce, read_all, send
from tests.node.test_housekeeping import SMALL_SEGMENTS, write_keys
from tests.node.world import BEGINNING, Client, World
from tests.records.malformed import Parts
from tests.records.malformed import batch_of as batch_around

MEBIBYTES_INSIDE = 24


def long_batch(producer: tuple[int, int, int] = (-1, -1, -1), last_offset: int = 1) -> bytearray:
    """Two records in 24 kB that are 24 MiB: much more than a step looks at."""
    builder = BatchBuilder(Codec.GZIP, 0, None, *producer)
    builder.append(None, bytes(MEBIBYTES_INSIDE << 20), BEGINNING.wall_ms)
    builder.append(None, b"last", BEGINNING.wall_ms, offset=last_offset)
    return builder.build()


LONG = long_batch()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    client = world.connect()
    create(client, "t", 2)
    return client


def post_and_hold(world: World, client: Client, *requests: Any) -> None:
    """Let nothing happen that belongs to a later turn, and spoil what the step was shown."""
    settle, world._settle = world._settle, lambda: None  # type: ignore[method-assign]
    client.post(*requests, version=NAMED)
    for frame in client._frames[: len(client._frames) - len(client._left)]:
        frame[:] = bytes(len(frame))
    world._settle = settle  # type: ignore[method-assign]


def test_a_long_look_is_a_slice_at_a_time_and_others_are_answered_meanwhile(world: World, client: Client) -> None:
    other = world.connect()
    post_and_hold(world, client, produce("t", batch=bytearray(LONG)))
    assert world.broker.slices and not client.answers
    settle, world._settle = world._settle, lambda: None  # type: ignore[method-assign]
    turns = 0
    while world.broker.slices:
        if turns < 10:
            other.ask(ApiVersionsRequest())
        world.step(Yielded())
        turns += 1
    world._settle = settle  # type: ignore[method-assign]
    assert turns > 10
    assert acknowledged(client.take()).base_offset == 0
    assert read_all(world.connect(), "t")[1] == b"last"
    assert world.broker.keeping.kept_bytes == 0


def test_what_comes_behind_on_its_connection_does_not_overtake_it(world: World, client: Client) -> None:
    first, second = produce("t", batch=bytearray(LONG)), produce("t", b"behind")
    post_and_hold(world, client, first, second)
    world.advance(1_000)
    assert [acknowledged(client.take()).base_offset for _ in range(2)] == [0, 2]


def test_an_idempotent_producer_stays_in_sequence(world: World, client: Client) -> None:
    first = produce("t", batch=long_batch((7, 0, 0)))
    second = produce("t", batch=batch_of(b"next", producer=(7, 0, 2)))
    post_and_hold(world, client, first, second)
    world.advance(1_000)
    assert [acknowledged(client.take()).base_offset for _ in range(2)] == [0, 2]


@pytest.mark.parametrize("acks", [-1, 1])
def test_one_partition_twice_in_a_request_keeps_its_order_and_others_need_not_wait(
    world: World, client: Client, acks: int
) -> None:
    batches = [(0, bytearray(LONG)), (0, batch_of(b"behind")), (1, batch_of(b"elsewhere"))]
    data = [PartitionProduceData(index=index, records=batch) for index, batch in batches]
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    post_and_hold(world, client, request)
    assert world.broker.partitions.by_name("t")[1].log.end_offset == 1  # type: ignore[index]
    world.advance(1_000)
    (topic,) = client.take().responses
    assert [(each.error_code, each.base_offset) for each in topic.partition_responses] == [(0, 0), (0, 2), (0, 0)]


def test_what_turns_out_wrong_late_is_not_stored(world: World, client: Client) -> None:
    post_and_hold(world, client, produce("t", batch=long_batch(last_offset=5)))
    world.advance(1_000)
    answer = acknowledged(client.take())
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert world.broker.partitions.by_name("t")[0].log.end_offset == 0  # type: ignore[index]


def test_without_acks_nothing_is_answered_and_an_error_closes(world: World, client: Client) -> None:
    post_and_hold(world, client, produce("t", batch=bytearray(LONG), acks=0), produce("t", b"behind"))
    world.advance(1_000)
    assert acknowledged(client.take()).base_offset == 2
    assert not client.answers
    post_and_hold(world, client, produce("t", batch=long_batch(last_offset=5), acks=0))
    world.advance(1_000)
    assert not client.is_open


def test_whoever_goes_away_leaves_nothing_behind(world: World, client: Client) -> None:
    post_and_hold(world, client, produce("t", batch=bytearray(LONG)))
    assert world.broker.keeping.kept_bytes > 0
    client.close()
    world.advance(1_000)
    assert world.broker.keeping.kept_bytes == 0
    assert send(world.connect(), "t", b"first") == 0


def test_more_than_may_be_kept_waits_outside(world: World, client: Client) -> None:
    world.broker.keeping._most_bytes = 1
    others = [world.connect() for _ in range(3)]
    post_and_hold(world, client, produce("t", batch=bytearray(LONG)))
    for other in others:
        post_and_hold(world, other, produce("t", batch=bytearray(LONG)), produce("t", b"behind"))
        assert len(other._left) == 2, "it was given back, with what stands behind it"
    assert len(world.broker.slices) == 1
    others[0].close()
    world.advance(10_000)
    assert acknowledged(client.take()).error_code == 0
    for other in others[1:]:
        assert [acknowledged(other.take()).error_code for _ in range(2)] == [0, 0]
    assert world.broker.keeping.kept_bytes == 0


def test_a_topic_may_do_without(world: World) -> None:
    client = world.connect()
    create(client, "strict")
    create(client, "lax", klamm_validate_records="false")
    garbage = garbage_batch()
    assert acknowledged(client.ask(produce("strict", batch=bytearray(garbage)), NAMED)).error_code == 87
    assert acknowledged(client.ask(produce("lax", batch=bytearray(garbage)), NAMED)).error_code == 0


def garbage_batch() -> bytearray:
    one = Parts(0, 0, b"a", b"value", [])
    one.key_length = 60
    return batch_around(Codec.NONE, one.encoded(), 1)


def test_compaction_goes_on_past_what_it_cannot_read_and_says_so_once(world: World) -> None:
    client = world.connect()
    create(client, "table", klamm_validate_records="false", **SMALL_SEGMENTS)
    for number in range(20):
        write_keys(client, "table", {b"a": b"a=%d" % number + b"." * 50})
    assert acknowledged(client.ask(produce("table", batch=garbage_batch()), NAMED)).error_code == 0
    for number in range(20, 40):
        write_keys(client, "table", {b"a": b"a=%d" % number + b"." * 50})
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    resource = AlterConfigsResource(
        resource_type=2,
        resource_name="table",
        configs=[AlterableConfig(name=name, config_operation=0, value=value) for name, value in settings.items()],
    )
    assert client.ask(IncrementalAlterConfigsRequest(resources=[resource])).responses[0].error_code == 0
    before = world.broker.partitions.by_name("table")[0].log.size_bytes  # type: ignore[index]
    for number in range(40, 50):
        world.advance(60_000)
        write_keys(client, "table", {b"a": b"a=%d" % number + b"." * 50})
    log = world.broker.partitions.by_name("table")[0].log  # type: ignore[index]
    assert log.size_bytes < before / 2
    assert len(world.told_of(CompactionPassedOver)) == 1
    assert not world.told_of(CompactionFailed)
