"""The same shop with aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition
from shop import read_some, send_all

ORDERS = [("Frieda", "two apples"), ("Karl", "a pear"), ("Frieda", "another apple")]


def test_sent_and_read(kafka, topic):
    async def story():
        offsets = await send_all(kafka.bootstrap_servers, topic, ORDERS)
        return offsets, await read_some(kafka.bootstrap_servers, topic, 3, "readers")

    assert asyncio.run(story()) == ([0, 1, 2], ["two apples", "a pear", "another apple"])


def test_a_group_goes_on_where_it_was(kafka, topic):
    async def story():
        await send_all(kafka.bootstrap_servers, topic, ORDERS)
        first = await read_some(kafka.bootstrap_servers, topic, 3, "accounts")
        await send_all(kafka.bootstrap_servers, topic, [("Karl", "a plum")])
        return first, await read_some(kafka.bootstrap_servers, topic, 1, "accounts")

    assert asyncio.run(story()) == (["two apples", "a pear", "another apple"], ["a plum"])


def test_an_idempotent_producer_and_a_look_at_the_end(kafka, topic):
    async def story():
        await send_all(kafka.bootstrap_servers, topic, ORDERS * 20, enable_idempotence=True)
        async with AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
            partition = TopicPartition(topic, 0)
            return await consumer.end_offsets([partition]), partition

    ends, partition = asyncio.run(story())
    assert ends[partition] == 60
