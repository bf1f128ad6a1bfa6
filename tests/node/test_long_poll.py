"""Trap 30: a fetch waits until enough can be read, something is wrong, or its time is over."""

import pytest

from klamm.errors import ErrorCode
from tests.node.requests import (
    NAMED,
    batch_of,
    create,
    creation,
    delete,
    delete_records,
    deletion,
    fetch,
    fetch_of,
    fetched,
    produce,
    send,
    values_in,
)
from tests.node.world import Client, World


@pytest.fixture
def world() -> World:
    world = World()
    create(world.connect(), "orders", 2)
    return world


@pytest.fixture
def reader(world: World) -> Client:
    return world.connect()


@pytest.fixture
def writer(world: World) -> Client:
    return world.connect()


def test_it_completes_with_the_first_byte(reader: Client, writer: Client) -> None:
    reader.post(fetch("orders", wait_ms=500), version=NAMED)
    assert reader.answers == []
    send(writer, "orders", b"here")
    assert values_in(fetched(reader.take())) == [b"here"]


def test_it_completes_with_any_of_its_partitions(reader: Client, writer: Client) -> None:
    reader.post(fetch_of([("orders", 0, 0), ("orders", 1, 0)], wait_ms=500), version=NAMED)
    send(writer, "orders", b"here", index=1)
    first, second = reader.take().responses[0].partitions
    assert values_in(first) == [] and values_in(second) == [b"here"]


def test_it_waits_for_min_bytes_over_all_its_partitions(reader: Client, writer: Client) -> None:
    size = len(batch_of(b"12345678"))
    reader.post(fetch_of([("orders", 0, 0), ("orders", 1, 0)], wait_ms=500, min_bytes=3 * size), version=NAMED)
    send(writer, "orders", b"12345678", index=0)
    send(writer, "orders", b"12345678", index=1)
    assert reader.answers == []
    send(writer, "orders", b"12345678", index=0)
    first, second = reader.take().responses[0].partitions
    assert len(values_in(first)) == 2 and len(values_in(second)) == 1


def test_one_byte_less_than_min_bytes_is_not_enough(reader: Client, writer: Client) -> None:
    size = len(batch_of(b"12345678"))
    reader.post(fetch("orders", wait_ms=500, min_bytes=size + 1), version=NAMED)
    send(writer, "orders", b"12345678")
    assert reader.answers == []


def test_it_completes_at_its_deadline_with_what_there_is(world: World, reader: Client, writer: Client) -> None:
    reader.post(fetch("orders", wait_ms=500, min_bytes=1_000), version=NAMED)
    send(writer, "orders", b"little")
    world.advance(499)
    assert reader.answers == []
    world.advance(1)
    assert values_in(fetched(reader.take())) == [b"little"]


def test_with_nothing_to_read_the_deadline_answers_empty(world: World, reader: Client) -> None:
    reader.post(fetch("orders", wait_ms=500), version=NAMED)
    world.advance(500)
    answer = fetched(reader.take())
    assert answer.error_code == ErrorCode.NONE and values_in(answer) == []


@pytest.mark.parametrize(("wait_ms", "min_bytes"), [(0, 1), (500, 0), (-1, 1), (500, -1)])
def test_who_does_not_want_to_wait_does_not(reader: Client, wait_ms: int, min_bytes: int) -> None:
    assert values_in(fetched(reader.ask(fetch("orders", wait_ms=wait_ms, min_bytes=min_bytes), NAMED))) == []


def test_only_what_is_committed_counts(world: World, reader: Client, writer: Client) -> None:
    """Readable bytes, not appended ones: with flush.messages=1 nothing is readable before it is on disk."""
    create(writer, "safe", flush_messages="1")
    reader.post(fetch("safe", wait_ms=500), version=NAMED)
    world.holds_flushes = True
    writer.post(produce("safe", b"soon"), version=NAMED)
    assert reader.answers == []
    world.flush()
    assert values_in(fetched(reader.take())) == [b"soon"]


def test_an_error_of_one_partition_completes_it_at_once(reader: Client) -> None:
    answer = reader.ask(fetch_of([("orders", 0, 0), ("orders", 7, 0)], wait_ms=500), NAMED)
    assert [each.error_code for each in answer.responses[0].partitions] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_an_offset_out_of_range_completes_it_at_once(reader: Client, writer: Client) -> None:
    send(writer, "orders", b"only")
    assert fetched(reader.ask(fetch("orders", 2, wait_ms=500), NAMED)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_deleted_past_its_position_complete_it(reader: Client, writer: Client) -> None:
    for value in (b"a", b"b", b"c"):
        send(writer, "orders", value)
    reader.post(fetch("orders", 1, wait_ms=500, min_bytes=10_000), version=NAMED)
    writer.ask(delete_records("orders", before=3))
    assert fetched(reader.take()).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_deletion_of_its_topic_completes_it(reader: Client, writer: Client) -> None:
    reader.post(fetch("orders", wait_ms=500), version=NAMED)
    delete(writer, "orders")
    assert fetched(reader.take()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_by_id_the_deletion_of_its_topic_is_an_unknown_id(reader: Client, writer: Client) -> None:
    topic_id = create(writer, "gone")
    reader.post(fetch(topic_id, wait_ms=500))
    delete(writer, "gone")
    assert fetched(reader.take()).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_made_anew_under_the_same_name_does_not_answer_for_the_old_one(reader: Client, writer: Client) -> None:
    topic_id = create(writer, "again")
    reader.post(fetch(topic_id, wait_ms=500))
    writer.post(deletion("again"), creation("again"))
    assert fetched(reader.take()).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_partition_that_goes_offline_completes_it(world: World, reader: Client, writer: Client) -> None:
    """Whoever waits for a partition hears at once that its disk failed, not at the deadline."""
    create(writer, "safe", flush_messages="1")
    reader.post(fetch("safe", wait_ms=30_000), version=NAMED)
    world.holds_flushes = True
    writer.post(produce("safe", b"lost"), version=NAMED)
    world.flush(error="Input/output error")
    assert fetched(reader.take()).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_fetch_of_an_offline_partition_is_answered_at_once(world: World, reader: Client, writer: Client) -> None:
    create(writer, "safe", flush_messages="1")
    world.holds_flushes = True
    writer.post(produce("safe", b"lost"), version=NAMED)
    world.flush(error="Input/output error")
    assert fetched(reader.ask(fetch("safe", wait_ms=30_000), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_fetch_is_answered_once(world: World, reader: Client, writer: Client) -> None:
    """By data, then its deadline passes, then more data comes."""
    reader.post(fetch("orders", wait_ms=500), version=NAMED)
    send(writer, "orders", b"one")
    world.advance(1_000)
    send(writer, "orders", b"two")
    assert len(reader.answers) == 1
