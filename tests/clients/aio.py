"""aiokafka: asyncio, and the oldest versions of most requests that are still in use."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

from tests.harness.workload import Received, Sent

Answer = TypeVar("Answer")


class AioKafka:
    name = "aiokafka"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        async def send_all(producer: AIOKafkaProducer) -> list[int]:
            futures = [
                await producer.send(topic, value, key, partition, timestamp_ms, list(headers))
                for partition, key, value, headers, timestamp_ms in records
            ]
            return [(await future).offset for future in futures]

        return _produced(
            bootstrap,
            send_all,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=20,
            max_batch_size=65536,
        )

    def produce_unplaced(
        self, bootstrap: str, topic: str, keys_and_values: Sequence[tuple[bytes | None, bytes]], partitioner: str
    ) -> list[int]:
        assert partitioner == "murmur2", "aiokafka hashes keys as the Java client does"

        async def send_all(producer: AIOKafkaProducer) -> list[int]:
            futures = [await producer.send(topic, value, key) for key, value in keys_and_values]
            return [(await future).partition for future in futures]

        return _produced(bootstrap, send_all)

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int | None = None
    ) -> dict[int, list[Received]]:
        places = [TopicPartition(topic, partition) for partition in partitions]

        async def read_all(consumer: AIOKafkaConsumer) -> dict[int, list[Received]]:
            found: dict[int, list[Received]] = {partition: [] for partition in partitions}
            consumer.assign(places)
            ends = await consumer.end_offsets(places)
            if start is None:
                await consumer.seek_to_beginning(*places)
            else:
                for place in places:
                    consumer.seek(place, start)
            unfinished = {place for place in places if ends[place] > (start or 0)}
            while unfinished:
                polled = await consumer.getmany(*unfinished, timeout_ms=30_000)
                assert polled, f"nothing came for 30 s, the ends are {ends}"
                for place, messages in polled.items():
                    found[place.partition] += [
                        _received(message) for message in messages if message.offset < ends[place]
                    ]
                    if messages[-1].offset + 1 >= ends[place]:
                        unfinished.discard(place)
            return found

        return _consumed(bootstrap, read_all)

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = TopicPartition(topic, partition)

        async def ask(consumer: AIOKafkaConsumer) -> int | None:
            found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
            return None if found is None else found.offset

        return _consumed(bootstrap, ask)


def _produced(bootstrap: str, work: Callable[[AIOKafkaProducer], Awaitable[Answer]], **settings: Any) -> Answer:
    async def run() -> Answer:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings)
        await producer.start()
        try:
            return await asyncio.wait_for(work(producer), 120)
        finally:
            await producer.stop()

    return asyncio.run(run())


def _consumed(bootstrap: str, work: Callable[[AIOKafkaConsumer], Awaitable[Answer]]) -> Answer:
    async def run() -> Answer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="none"
        )
        await consumer.start()
        try:
            return await asyncio.wait_for(work(consumer), 120)
        finally:
            await consumer.stop()

    return asyncio.run(run())


def _received(message: "ConsumerRecord[bytes | None, bytes | None]") -> Received:
    headers = tuple((name, value) for name, value in message.headers)
    return Received(message.partition, message.offset, message.key, message.value, headers, message.timestamp)
