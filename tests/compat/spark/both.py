"""The same query with both formats. It gives rows, or the refusal; of a stream also where each trigger ended."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows: TypeAlias = list[dict[str, Any]]

FORMATS = ("klamm", "kafka")
OUR_MEMBER = "_klamm"
REFUSED = (PySparkException, Py4JJavaError)
"""Errors of Spark itself, and of the connector where it lets one of Java's through."""


@dataclass
class Streamed:
    triggers: list[Rows] = field(default_factory=list)
    ends: list[dict[str, dict[str, int]]] = field(default_factory=list)
    latest: list[dict[str, dict[str, int]]] = field(default_factory=list)

    @property
    def rows(self) -> Rows:
        return in_order(row for trigger in self.triggers for row in trigger)


class Both:
    def __init__(self, spark: "SparkSession", bootstrap: str, home: Path) -> None:
        self.spark = spark
        self.where = {"kafka.bootstrap.servers": bootstrap}
        self._home = home

    def frame(self, kind: str, options: Mapping[str, str]) -> "DataFrame":
        return self.spark.read.format(kind).options(**{**self.where, **options}).load()

    def batch(self, kind: str, options: Mapping[str, str]) -> Rows:
        return _rows(self.frame(kind, options))

    def batches(self, **options: str) -> Rows:
        """Equal for both; what they are."""
        ours, theirs = (self.batch(kind, options) for kind in FORMATS)
        assert ours == theirs
        return ours

    def stream(self, kind: str, options: Mapping[str, str], checkpoint: str = "") -> Streamed:
        """Everything there is now, and then it ends."""
        found = Streamed()
        source = self.spark.readStream.format(kind).options(**{**self.where, **options}).load()
        query = (
            source.writeStream.foreachBatch(lambda frame, _: found.triggers.append(_rows(frame)))
            .option("checkpointLocation", str(self._home / (checkpoint or f"checkpoint-{kind}")))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120), "it does not end"
        finally:
            query.stop()
        for progress in query.recentProgress:
            said = json.loads(progress.json)["sources"][0]
            found.ends.append(_offsets(said["endOffset"]))
            found.latest.append(_offsets(said["latestOffset"]))
        return found

    def streams(self, **options: str) -> Streamed:
        ours, theirs = (self.stream(kind, options) for kind in FORMATS)
        assert ours.triggers == theirs.triggers
        assert ours.ends == theirs.ends
        assert ours.latest == theirs.latest
        return ours

    def refusal(self, kind: str, options: Mapping[str, str], streaming: bool, checkpoint: str = "") -> str:
        with pytest.raises(REFUSED) as refused:
            self.stream(kind, options, checkpoint) if streaming else self.batch(kind, options)
        return str(refused.value)

    def write(self, kind: str, frame: "DataFrame", **options: str) -> None:
        frame.write.format(kind).options(**{**self.where, **options}).mode("append").save()


def in_order(rows: Any) -> Rows:
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def _rows(frame: "DataFrame") -> Rows:
    return in_order(frame.toArrow().to_pylist())


def _offsets(said: Any) -> dict[str, dict[str, int]]:
    """As a value, without the member that says whose checkpoint it is."""
    read = json.loads(said) if isinstance(said, str) else said
    return {topic: offsets for topic, offsets in (read or {}).items() if topic != OUR_MEMBER}
