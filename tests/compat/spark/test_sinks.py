"""Rows written with one format are what the other would have written; and what one refuses, the other refuses."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.compat.spark.both import FORMATS, REFUSED, Both
from tests.compat.spark.world import World
from tests.harness.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEADERS = "array(named_struct('key', 'a', 'value', cast('1' as binary)), named_struct('key', 'a', 'value', null))"
ROWS = f"""
    select concat('key-', id) key, if(id % 7 = 0, null, concat('value-', id)) value,
        if(id % 3 = 0, cast(id % 5 as int), null) partition, if(id % 2 = 0, {HEADERS}, null) headers,
        id as of_the_user
    from range(300)
"""


def written(both: Both, world: World, frame: "DataFrame", name: str, **options: str) -> list[dict[str, object]]:
    """As a reader finds it; where rows come from several tasks, their order within a partition is chance."""
    create_topic(world.bootstrap, name, 5)
    for_topic = {} if "topic" in frame.columns else {"topic": name}
    both.write(name.partition("-")[0], frame, **for_topic, **options)
    rows = both.batch("kafka", {"subscribe": name, "includeHeaders": "true"})
    return sorted(
        ({field: row[field] for field in ("partition", "key", "value", "headers", "timestampType")} for row in rows),
        key=lambda row: (row["partition"], row["key"], str(row["value"])),
    )


def test_the_same_rows_become_the_same_records(both: Both, world: World) -> None:
    """In the same partitions too: a key goes where Java's producer would send it."""
    frame = both.spark.sql(ROWS)
    ours, theirs = (written(both, world, frame, f"{kind}-columns") for kind in FORMATS)
    assert ours == theirs
    assert len(ours) == 300


def test_the_column_topic_and_the_settings_of_a_producer(both: Both, world: World) -> None:
    settings = {
        "kafka.compression.type": "zstd",
        "kafka.linger.ms": "5",
        "kafka.batch.size": "20000",
        "kafka.acks": "all",
        "kafka.max.request.size": "2000000",
        "kafka.buffer.memory": "33554432",
        "kafka.max.block.ms": "30000",
    }
    found = []
    for kind in FORMATS:
        rows = both.spark.sql(f"select '{kind}-chosen' topic, cast(id as string) key, binary('v') value from range(50)")
        found.append(written(both, world, rows, f"{kind}-chosen", **settings))
    assert found[0] == found[1] and len(found[0]) == 50


WRONG = {
    "no value": ("select '1' key", {"topic": "t"}),
    "a value of another type": ("select 1 value", {"topic": "t"}),
    "a key of another type": ("select 1 key, 'v' value", {"topic": "t"}),
    "a partition of another type": ("select 1L partition, 'v' value", {"topic": "t"}),
    "headers of another type": ("select array('x') headers, 'v' value", {"topic": "t"}),
    "no topic": ("select 'v' value", {}),
    "a topic of another type": ("select 1 topic, 'v' value", {}),
    "a null topic": ("select cast(null as string) topic, 'v' value", {}),
    "a negative partition": ("select -1 partition, 'v' value", {"topic": "sparse"}),
    "too large a record": ("select repeat('x', 2000000) value", {"topic": "sparse"}),
    "a nameless header": (
        "select array(named_struct('key', cast(null as string), 'value', binary('1'))) headers, 'v' value",
        {"topic": "sparse"},
    ),
    "a serializer": ("select 'v' value", {"topic": "t", "kafka.key.serializer": "X"}),
    "acks": ("select 'v' value", {"topic": "t", "kafka.acks": "some"}),
    "a codec": ("select 'v' value", {"topic": "t", "kafka.compression.type": "brotli"}),
    "idempotence without acks": (
        "select 'v' value",
        {"topic": "t", "kafka.acks": "1", "kafka.enable.idempotence": "true"},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_both_refuse(both: Both, case: str) -> None:
    rows, options = WRONG[case]
    for kind in FORMATS:
        with pytest.raises(REFUSED):
            both.write(kind, both.spark.sql(rows), **options)


def test_neither_overwrites(both: Both) -> None:
    for kind in FORMATS:
        rows = both.spark.sql("select 'v' value").write.format(kind).options(**both.where, topic="sparse")
        with pytest.raises(REFUSED):
            rows.mode("overwrite").save()


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_results_that_change_are_written_again(both: Both, world: World, tmp_path: Path, mode: str) -> None:
    """The counts of a stream, as far as they are known: a topic takes them in every output mode, as one row after the
    other."""
    found = []
    for kind in FORMATS:
        create_topic(world.bootstrap, f"{kind}-{mode}", 1)
        source = both.spark.readStream.format(kind).options(
            **both.where, subscribe="sparse", startingOffsets="earliest"
        )
        counts = source.load().groupBy("partition").count().selectExpr("'k' key", "cast(count as string) value")
        query = (
            counts.writeStream.format(kind)
            .outputMode(mode)
            .options(**both.where, topic=f"{kind}-{mode}", checkpointLocation=str(tmp_path / kind))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        found.append([row["value"] for row in both.batch("klamm", {"subscribe": f"{kind}-{mode}"})])
    assert found == [[b"120"], [b"120"]]
