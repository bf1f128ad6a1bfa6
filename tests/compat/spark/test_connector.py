"""Spark's own connector on a cluster of three, batch and stream, read and write, while a broker is killed."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.compat.cluster.clusters import Cluster, KlammCluster
from tests.compat.spark.both import FORMATS
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPLICATED = {"default.replication.factor": "3", "min.insync.replicas": "2"}
PARTITIONS, COUNT = 6, 12_000
VICTIM = 1


@pytest.fixture(scope="module")
def cluster(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = KlammCluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=REPLICATED)
    yield running
    running.close()


@pytest.fixture(autouse=True)
def whole(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.start_all()


class Topic:
    """One topic, to be read and written with one format."""

    def __init__(self, spark: "SparkSession", kind: str, cluster: Cluster, name: str) -> None:
        create_topic(cluster.bootstrap, name, PARTITIONS)
        self._spark, self._kind, self.name = spark, kind, name
        self._where = {"kafka.bootstrap.servers": cluster.bootstrap}

    def write(self, first: int, count: int) -> None:
        rows = self._spark.range(first, first + count).selectExpr("cast(id as string) key", "cast(id as string) value")
        rows.write.format(self._kind).options(**self._where).option("topic", self.name).mode("append").save()

    def numbers(self) -> list[int]:
        read = self._spark.read.format(self._kind).options(**self._where).option("subscribe", self.name).load()
        return sorted(row.number for row in read.selectExpr("cast(cast(value as string) as int) number").collect())

    def stream(self) -> "DataFrame":
        options = {"subscribe": self.name, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1500"}
        return self._spark.readStream.format(self._kind).options(**self._where).options(**options).load()

    def sink(self, rows: "DataFrame", checkpoint: Path):  # type: ignore[no-untyped-def]
        writer = rows.writeStream.format(self._kind).options(**self._where).option("topic", self.name)
        return writer.option("checkpointLocation", str(checkpoint)).start()


@pytest.mark.parametrize("kind", FORMATS)
def test_batches_while_a_broker_is_dead(spark: "SparkSession", cluster: Cluster, topic: str, kind: str) -> None:
    place = Topic(spark, kind, cluster, topic)
    place.write(0, COUNT)
    assert place.numbers() == list(range(COUNT))
    cluster.kill(VICTIM)
    assert place.numbers() == list(range(COUNT)), "right after, from whoever leads now"
    place.write(COUNT, COUNT)
    cluster.start(VICTIM)
    assert place.numbers() == list(range(2 * COUNT)), "all of them, and none twice: no task had to be run again"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_stream_from_topic_to_topic_while_a_broker_dies_and_comes_back(
    spark: "SparkSession", cluster: Cluster, topic: str, kind: str, tmp_path: Path
) -> None:
    source, target = Topic(spark, kind, cluster, topic), Topic(spark, kind, cluster, f"{topic}-copy")
    feeder = threading.Thread(target=_feed, args=(cluster.bootstrap, source.name))
    feeder.start()
    query = target.sink(source.stream().select("key", "value"), tmp_path / "checkpoint")

    def read() -> int:
        assert query.exception() is None, query.exception()
        return sum(progress.numInputRows for progress in query.recentProgress)

    try:
        wait_until(lambda: read() >= COUNT // 8, "it has begun", within_seconds=90)
        cluster.kill(VICTIM)
        wait_until(lambda: read() >= COUNT // 2, "it goes on without the broker", within_seconds=90)
        cluster.start(VICTIM)
        feeder.join()
        wait_until(lambda: read() >= COUNT, "it has read all", within_seconds=90)
    finally:
        feeder.join()
        query.stop()
    assert sorted(set(target.numbers())) == list(range(COUNT)), "at least once, each"


def _feed(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 50})
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(120) == 0
