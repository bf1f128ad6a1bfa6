"""What is in a topic, as librdkafka's consumer reads it."""

from typing import Any

from confluent_kafka import Consumer, TopicPartition


def everything(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    """All records of a topic, partition by partition."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False})
    places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
    left = sum(reader.get_watermark_offsets(place, timeout=10)[1] for place in places)
    reader.assign(places)
    found: list[Any] = []
    while left:
        got = reader.consume(left, timeout=10)
        assert got, f"{left} records of {topic} are missing"
        found += got
        left -= len(got)
    reader.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))
