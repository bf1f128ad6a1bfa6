"""A topic with orders in it, and what the pipeline made of them."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.pipeline.runner.shop import expected, orders

PARTITIONS = 3


def make_topic(servers: str, topic: str = "orders") -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        future.result(30)


def produce(servers: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for number, record in enumerate(orders(first, count), first):
        producer.produce("orders", record.value, key=str(number), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def rows(data: Path, table: str) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    found: list[dict[str, Any]] = DeltaTable(str(data / "tables" / table)).to_pyarrow_table().to_pylist()
    return found


def values_in(servers: str, topic: str) -> list[tuple[bytes, dict[str, bytes]]]:
    """Every record of a topic: its value and its headers."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False})
    partitions = reader.list_topics(topic, timeout=30).topics[topic].partitions
    ends = {each: reader.get_watermark_offsets(TopicPartition(topic, each), timeout=30)[1] for each in partitions}
    reader.assign([TopicPartition(topic, each, 0) for each in partitions])
    found = []
    while len(found) < sum(ends.values()):
        message = reader.poll(30)
        assert message is not None and message.error() is None
        found.append((message.value(), dict(message.headers() or [])))
    reader.close()
    return found


def check_tables(data: Path, count: int) -> None:
    """Each of the first `count` orders is in the tables exactly once."""
    wanted = expected(count)
    kept = rows(data, "orders")
    assert Counter(row["id"] for row in kept) == Counter(wanted.ids)
    assert sum(row["total"] for row in kept) == Decimal(str(wanted.total))
    assert len(rows(data, "line_items")) == wanted.lines
    quarantined = rows(data, "orders_quarantine")
    places = {(row["topic"], row["partition"], row["offset"]) for row in quarantined}
    assert len(places) == len(quarantined) == wanted.quarantined
