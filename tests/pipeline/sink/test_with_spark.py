"""What only Spark can show: a batch and a stream arrive in a topic, and what is wrong is said before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from klamm.pipeline.registration import register
from tests.harness.topics import create_topic
from tests.pipeline.sink.reading import everything

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEADERS = "array(named_struct('key', 'of', 'value', binary('x')))"


@pytest.fixture
def writing(spark: "SparkSession") -> "SparkSession":
    register(spark)
    return spark


def test_a_batch_and_a_stream(writing: "SparkSession", bootstrap: str, tmp_path: Path) -> None:
    create_topic(bootstrap, "written", 2)
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "written", "kafka.compression.type": "lz4"}
    rows = writing.range(500).selectExpr("cast(id as string) key", "cast(id as string) value", f"{HEADERS} headers")

    rows.write.format("klamm").options(**options).mode("append").save()
    found = everything(bootstrap, "written", 2)
    assert sorted(int(message.value()) for message in found) == list(range(500))
    assert {message.headers()[0][0] for message in found} == {"of"}

    rows.write.parquet(str(tmp_path / "rows"))
    stream = writing.readStream.schema(rows.schema).parquet(str(tmp_path / "rows")).drop("headers")
    query = (
        stream.writeStream.format("klamm")
        .options(**options, checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    assert len(everything(bootstrap, "written", 2)) == 1_000


def test_what_is_wrong_is_said_before_anything_runs(writing: "SparkSession", bootstrap: str) -> None:
    rows = writing.range(1).selectExpr("id as value").write.format("klamm").mode("append")
    with pytest.raises(AnalysisException, match="The column value is of type bigint; it has to be string or binary"):
        rows.options(**{"kafka.bootstrap.servers": bootstrap, "topic": "t"}).save()
