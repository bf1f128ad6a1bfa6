"""The script of docs/moving.md between Apache Kafka and Klamm, there and back: nothing is lost on the way."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.cli.grouping import committed
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.setups.moving_old import main as fill
from tests.harness.kafka_node import KafkaNode
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.compat
PARTITIONS = 3


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    kafka = KafkaNode(tmp_path / "kafka", {"offsets.topic.replication.factor": "1"})
    klamm = KlammNode(tmp_path / "klamm")
    try:
        kafka.start()
        klamm.start()
        yield kafka, klamm
    finally:
        kafka.discard()
        klamm.discard()


def test_records_and_groups_move_to_klamm_and_back(clusters: tuple[Node, Node], tmp_path: Path) -> None:
    kafka, klamm = clusters
    fill(kafka.bootstrap)
    (tmp_path / "copy_topics.py").write_text(script(), encoding="utf-8")
    before = everything(kafka.bootstrap)
    assert [len(records) for records in before] == [25, 30, 30]

    copy(tmp_path, kafka, klamm)
    assert everything(klamm.bootstrap) == before
    assert committed(klamm.bootstrap, "billing", "invoice", PARTITIONS) == [5, 10, 10]

    delete(kafka.bootstrap, "invoice")
    copy(tmp_path, klamm, kafka)
    assert everything(kafka.bootstrap) == before
    assert committed(kafka.bootstrap, "billing", "invoice", PARTITIONS) == [5, 10, 10]


def script() -> str:
    return next(block.text for block in blocks_of(ROOT / "docs" / "moving.md") if block.file == "copy_topics.py")


def copy(where: Path, old: Node, new: Node) -> None:
    command = [sys.executable, "copy_topics.py", old.bootstrap, new.bootstrap, "invoice"]
    ended = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "invoice: 85 records" in ended.stdout and "group billing: 3 offsets" in ended.stdout


def everything(bootstrap: str) -> list[list[tuple[object, ...]]]:
    """What each partition holds, in order: key, value, headers, time."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "looking", "enable.auto.commit": False})
    found = []
    for partition in range(PARTITIONS):
        first, end = consumer.get_watermark_offsets(TopicPartition("invoice", partition), timeout=30)
        consumer.assign([TopicPartition("invoice", partition, first)])
        records: list[tuple[object, ...]] = []
        while len(records) < end - first:
            message = consumer.poll(30)
            assert message is not None and message.error() is None
            records.append((message.key(), message.value(), message.headers(), message.timestamp()[1]))
        found.append(records)
    consumer.close()
    return found


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    wait_until(lambda: topic not in admin.list_topics(timeout=10).topics, f"{topic} is gone")
