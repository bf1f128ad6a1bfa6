"""What only Spark can show: rows of a batch, triggers of a stream, and a query that goes on after it was stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[tuple[int, int, bytes]]


class Stream:
    """A query into memory that reads all there is and ends; run again, it goes on at its checkpoint."""

    def __init__(self, spark: "SparkSession", topics: Topics, checkpoint: Path) -> None:
        self._spark, self._topics, self._checkpoint = spark, topics, checkpoint
        self.rows: Rows = []
        self.batches: list[int] = []
        self.progress: list[Any] = []

    def run(self, topic: str, **options: str) -> "Stream":
        source = self._spark.readStream.format("klamm").option(
            "kafka.bootstrap.servers", self._topics.bootstrap_servers
        )
        frame = source.options(**{"subscribe": topic, "startingOffsets": "earliest", **options}).load()
        query = (
            frame.select("partition", "offset", "value")
            .writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
        assert not query.isActive
        self.progress = [json.loads(progress.json) for progress in query.recentProgress]
        return self

    def _take(self, frame: "DataFrame", batch: int) -> None:
        rows = [(row.partition, row.offset, bytes(row.value)) for row in frame.collect()]
        self.rows += rows
        self.batches.append(len(rows))


@pytest.fixture
def stream(reading: "SparkSession", topics: Topics, tmp_path: Path) -> Callable[[], Stream]:
    return lambda: Stream(reading, topics, tmp_path / "checkpoint")


def test_a_batch_has_all_columns(reading: "SparkSession", topics: Topics) -> None:
    topics.create("columns", 2)
    topics.write("columns", 0, [b"a", b"b"])
    topics.write("columns", 1, [b"c"])
    frame = (
        reading.read.format("klamm")
        .option("kafka.bootstrap.servers", topics.bootstrap_servers)
        .option("subscribe", "columns")
        .option("includeHeaders", "true")
        .option("minPartitions", "3")
        .load()
    )
    assert frame.rdd.getNumPartitions() == 3
    rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.topic, row.partition, row.offset, bytes(row.value)) for row in rows] == [
        ("columns", 0, 0, b"a"),
        ("columns", 0, 1, b"b"),
        ("columns", 1, 0, b"c"),
    ]
    assert rows[0].key is None and rows[0].timestampType == 0 and rows[0].headers is None


def test_a_mistake_is_told_in_our_words(reading: "SparkSession", topics: Topics) -> None:
    frame = reading.read.format("klamm").option("kafka.bootstrap.servers", topics.bootstrap_servers)
    with pytest.raises(Exception, match="Say what to read with exactly one of subscribe"):
        frame.load().collect()


def test_a_stream_reads_in_triggers_goes_on_and_finds_new_partitions(
    stream: Callable[[], Stream], topics: Topics
) -> None:
    topics.create("triggers", 2)
    topics.write("triggers", 0, [b"a%d" % i for i in range(60)])
    topics.write("triggers", 1, [b"b%d" % i for i in range(30)])
    first = stream().run("triggers", maxOffsetsPerTrigger="30", **{"kafka.group.id": "watched"})
    assert first.batches == [30, 30, 30]
    assert sorted(first.rows) == [(0, i, b"a%d" % i) for i in range(60)] + [(1, i, b"b%d" % i) for i in range(30)]
    source = first.progress[0]["sources"][0]
    assert source["latestOffset"]["triggers"] == {"0": 60, "1": 30}
    assert source["endOffset"]["triggers"] == {"0": 20, "1": 10}

    assert topics.committed("watched", "triggers", 2) == [60, 30]

    topics.write("triggers", 1, [b"more"])
    topics.add_partitions("triggers", 3)
    topics.write("triggers", 2, [b"c0", b"c1"])
    assert sorted(stream().run("triggers").rows) == [(1, 30, b"more"), (2, 0, b"c0"), (2, 1, b"c1")]
