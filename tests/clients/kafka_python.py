"""kafka-python: pure Python, and the newest versions of most requests (topic ids included)."""

from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from tests.harness.workload import Received, Sent


class KafkaPython:
    name = "kafka-python"

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=20,
            batch_size=65536,
        )
        try:
            futures = [
                producer.send(
                    topic, value=value, key=key, headers=list(headers), partition=partition, timestamp_ms=timestamp_ms
                )
                for partition, key, value, headers, timestamp_ms in records
            ]
            producer.flush(timeout=120)
            return [future.get(timeout=60).offset for future in futures]
        finally:
            producer.close(timeout=10)

    def produce_unplaced(
        self, bootstrap: str, topic: str, keys_and_values: Sequence[tuple[bytes | None, bytes]], partitioner: str
    ) -> list[int]:
        assert partitioner == "murmur2", "kafka-python hashes keys as the Java client does"
        producer = KafkaProducer(bootstrap_servers=bootstrap)
        try:
            futures = [producer.send(topic, value=value, key=key) for key, value in keys_and_values]
            producer.flush(timeout=60)
            return [future.get(timeout=60).partition for future in futures]
        finally:
            producer.close(timeout=10)

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int | None = None
    ) -> dict[int, list[Received]]:
        found: dict[int, list[Received]] = {partition: [] for partition in partitions}
        consumer = assigning_consumer(bootstrap)
        try:
            places = {partition: TopicPartition(topic, partition) for partition in partitions}
            consumer.assign(list(places.values()))
            ends = {place.partition: end for place, end in consumer.end_offsets(list(places.values())).items()}
            if start is None:
                consumer.seek_to_beginning(*places.values())
            else:
                for place in places.values():
                    consumer.seek(place, start)
            while any(consumer.position(places[partition]) < ends[partition] for partition in partitions):
                polled = consumer.poll(timeout_ms=30_000, max_records=5000)
                assert polled, f"nothing came for 30 s, the ends are {ends}"
                for place, messages in polled.items():
                    end = ends[place.partition]
                    found[place.partition] += [_received(message) for message in messages if message.offset < end]
        finally:
            consumer.close()
        return found

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        consumer = assigning_consumer(bootstrap)
        try:
            place = TopicPartition(topic, partition)
            found = consumer.offsets_for_times({place: timestamp_ms})[place]
            return None if found is None else int(found.offset)
        finally:
            consumer.close()


def assigning_consumer(bootstrap: str, **more: Any) -> KafkaConsumer:
    """A consumer that belongs to no group."""
    settings: dict[str, Any] = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "none", **more}
    return KafkaConsumer(bootstrap_servers=bootstrap, **settings)


def _received(message: ConsumerRecord) -> Received:
    headers = tuple((name, value) for name, value in message.headers)
    return Received(message.partition, message.offset, message.key, message.value, headers, message.timestamp)
