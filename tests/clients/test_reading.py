"""Consumers read from any offset, forward, at their own pace, any number of times, and what is committed only."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import asyncio
import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import OffsetOutOfRangeError as AioOutOfRange
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, Message, TopicPartition
from kafka import TopicPartition as PythonTopicPartition
from kafka.errors import OffsetOutOfRangeError

from tests.clients import DRIVERS
from tests.clients.confluent import assigning_consumer
from tests.clients.driver import Driver
from tests.clients.kafka_python import assigning_consumer as python_consumer
from tests.harness.fixtures import new_name
from tests.harness.node import Node
from tests.harness.topics import create_topic
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent, drawn_records, expected

COUNT = 1000
each_client = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)


@pytest.fixture(scope="module")
def filled(node: Node) -> str:
    """One partition of a thousand records in a few compressed batches; record i has timestamp FIRST + i."""
    name = new_name("filled")
    create_topic(node.bootstrap, name, 1)
    DRIVERS[0].produce(node.bootstrap, name, _records(), "lz4")
    return name


@pytest.fixture
def consumer(node: Node) -> Iterator[Consumer]:
    reader = assigning_consumer(node.bootstrap)
    yield reader
    reader.close()


@each_client
@pytest.mark.parametrize("start", [None, 0, 1, 499, 998, 999, 1000])
def test_S23_reads_forward_from_any_offset(node: Node, filled: str, driver: Driver, start: int | None) -> None:
    """Also from the middle of a batch, where the broker sends the whole batch and the client skips."""
    wanted = expected(_records(), 1)[0][start or 0 :]
    assert driver.consume(node.bootstrap, filled, [0], start)[0] == wanted


@each_client
def test_S23_reads_any_number_of_times(node: Node, filled: str, driver: Driver) -> None:
    wanted = expected(_records(), 1)
    for _ in range(3):
        assert driver.consume(node.bootstrap, filled, [0]) == wanted


@each_client
def test_S23_finds_the_first_offset_at_or_after_a_time(node: Node, filled: str, driver: Driver) -> None:
    ask = driver.offset_for_time
    assert ask(node.bootstrap, filled, 0, 0) == 0
    assert ask(node.bootstrap, filled, 0, FIRST_TIMESTAMP_MS) == 0
    assert ask(node.bootstrap, filled, 0, FIRST_TIMESTAMP_MS + 1) == 1
    assert ask(node.bootstrap, filled, 0, FIRST_TIMESTAMP_MS + 777) == 777
    assert ask(node.bootstrap, filled, 0, FIRST_TIMESTAMP_MS + COUNT) is None


def test_S23_one_consumer_moves_back_and_forth(filled: str, consumer: Consumer) -> None:
    consumer.assign([TopicPartition(filled, 0, OFFSET_BEGINNING)])
    assert _next(consumer).offset() == 0
    for offset in (700, 3, 999, 0, 500, 500):
        consumer.seek(TopicPartition(filled, 0, offset))
        message = _next(consumer)
        assert message.offset() == offset
        assert message.value() == _records()[offset].value


def test_S23_a_reader_at_the_end_gets_what_comes_next(node: Node, topic: str, consumer: Consumer) -> None:
    create_topic(node.bootstrap, topic, 1)
    driver = DRIVERS[0]
    driver.produce(node.bootstrap, topic, [Sent(0, None, b"before", (), FIRST_TIMESTAMP_MS)])
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    deadline = time.monotonic() + 30
    while consumer.get_watermark_offsets(TopicPartition(topic, 0), cached=True)[1] != 1:
        assert time.monotonic() < deadline, "it never learnt where the end is"
        assert consumer.poll(0.05) is None
    driver.produce(node.bootstrap, topic, [Sent(0, None, b"after", (), FIRST_TIMESTAMP_MS)])
    message = _next(consumer)
    assert (message.offset(), message.value()) == (1, b"after")


def test_S23_confluent_is_told_that_an_offset_is_beyond_the_end(filled: str, consumer: Consumer) -> None:
    consumer.assign([TopicPartition(filled, 0, COUNT + 1)])
    message = _polled(consumer)
    error = message.error()
    assert error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET


def test_S23_kafka_python_is_told_that_an_offset_is_beyond_the_end(node: Node, filled: str) -> None:
    reader = python_consumer(node.bootstrap)
    try:
        place = PythonTopicPartition(filled, 0)
        reader.assign([place])
        reader.seek(place, COUNT + 1)
        with pytest.raises(OffsetOutOfRangeError):
            _poll_until_something(reader)
    finally:
        reader.close()


def test_S23_aiokafka_is_told_that_an_offset_is_beyond_the_end(node: Node, filled: str) -> None:
    async def read() -> None:
        place = AioTopicPartition(filled, 0)
        reader = AIOKafkaConsumer(bootstrap_servers=node.bootstrap, auto_offset_reset="none", enable_auto_commit=False)
        await reader.start()
        try:
            reader.assign([place])
            reader.seek(place, COUNT + 1)
            with pytest.raises(AioOutOfRange):
                await asyncio.wait_for(reader.getone(), 30)
        finally:
            await reader.stop()

    asyncio.run(read())


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", COUNT)])
def test_S23_a_consumer_beyond_the_end_starts_over_where_it_was_told_to(
    node: Node, filled: str, reset: str, first: int
) -> None:
    reader = python_consumer(node.bootstrap, auto_offset_reset=reset)
    try:
        place = PythonTopicPartition(filled, 0)
        reader.assign([place])
        reader.seek(place, COUNT + 50)
        deadline = time.monotonic() + 30
        while reader.position(place) == COUNT + 50:
            assert time.monotonic() < deadline, "the position was not reset"
            polled = reader.poll(timeout_ms=200, max_records=1)
            if polled:
                assert polled[place][0].offset == first
                return
        assert reader.position(place) == first
    finally:
        reader.close()


@each_client
def test_S16_what_was_acknowledged_is_committed_and_readable_at_once(node: Node, topic: str, driver: Driver) -> None:
    """With one replica, in sync by itself, acks=all means: the high watermark is past the record already."""
    create_topic(node.bootstrap, topic, 1)
    watermarks = assigning_consumer(node.bootstrap)
    try:
        for number in range(4):
            (offset,) = driver.produce(node.bootstrap, topic, [Sent(0, b"k", b"%d" % number, (), FIRST_TIMESTAMP_MS)])
            assert offset == number
            assert watermarks.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, number + 1)
            (seen,) = driver.consume(node.bootstrap, topic, [0], start=number)[0]
            assert (seen.offset, seen.value) == (number, b"%d" % number)
    finally:
        watermarks.close()


def _records() -> list[Sent]:
    return drawn_records(COUNT, 1, seed=23)


def _polled(consumer: Consumer) -> Message:
    message = consumer.poll(30)
    assert message is not None, "nothing came for 30 s"
    return message


def _next(consumer: Consumer) -> Message:
    message = _polled(consumer)
    assert message.error() is None, message.error()
    return message


def _poll_until_something(reader: object) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert not reader.poll(timeout_ms=500)  # type: ignore[attr-defined]
