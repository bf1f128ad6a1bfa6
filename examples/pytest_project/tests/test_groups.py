"""Readers in a group: where they left off, how far they are behind, how they share the work."""

import time
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition
from shop import Orders, take, values


@pytest.fixture
def member(kafka, topic_name):
    """Makes members of this test's group. Who is closed leaves the group at once."""

    def new_member():
        settings = {"group.id": topic_name, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return closing(Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings}))

    return new_member


def sent(kafka, topic, count):
    orders = Orders(kafka.bootstrap_servers, topic)
    for number in range(count):
        orders.send(str(number), customer=str(number))
    orders.wait()


def test_the_next_reader_goes_on_where_the_last_one_committed(kafka, topic, member):
    sent(kafka, topic, 10)
    with member() as first:
        first.subscribe([topic])
        assert values(take(first, 4)) == ["0", "1", "2", "3"]
        first.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    with member() as second:
        second.subscribe([topic])
        assert values(take(second, 6)) == ["4", "5", "6", "7", "8", "9"]


def test_lag_is_what_is_not_committed_yet(kafka, topic, member):
    sent(kafka, topic, 10)
    with member() as consumer:
        partition = TopicPartition(topic, 0, 7)
        consumer.commit(offsets=[partition], asynchronous=False)
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        (committed,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    assert end - committed.offset == 3


def test_two_members_share_the_partitions(kafka, topic_name, member):
    topic = kafka.create_topic(topic_name, partitions=4)
    with member() as first, member() as second:
        first.subscribe([topic])
        second.subscribe([topic])
        deadline = time.monotonic() + 60
        while {len(first.assignment()), len(second.assignment())} != {2}:
            assert time.monotonic() < deadline, f"{first.assignment()} {second.assignment()}"
            first.poll(0.05)
            second.poll(0.05)
        shared = {each.partition for reader in (first, second) for each in reader.assignment()}
    assert shared == {0, 1, 2, 3}
