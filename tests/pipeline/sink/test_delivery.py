"""What a task does, called as Spark calls it, on a cluster in this process: everything arrives, or it says why not."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructField, StructType

from klamm.pipeline.sink import batch_writer, stream_writer
from klamm.pipeline.sink.problems import NotDelivered, WrongOption
from tests.harness.topics import create_topic
from tests.pipeline.sink.reading import everything

SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("key", StringType()),
        StructField("value", BinaryType()),
        StructField("partition", IntegerType()),
        StructField(
            "headers",
            ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
        ),
    ]
)
ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("key", pa.string()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
PLAIN_ARROW = pa.schema([("key", pa.string()), ("value", pa.string())])
PLAIN = StructType([StructField("key", StringType()), StructField("value", StringType())])


def rows(*values: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(values), ARROW)


def plain(count: int, first: int = 0) -> pa.RecordBatch:
    numbers = [str(number) for number in range(first, first + count)]
    return pa.RecordBatch.from_pydict({"key": numbers, "value": numbers})


def test_every_column_arrives(bootstrap: str) -> None:
    create_topic(bootstrap, "columns", 3)
    create_topic(bootstrap, "other", 1)
    writer = stream_writer({"kafka.bootstrap.servers": bootstrap}, SCHEMA)
    batch = rows(
        {"topic": "columns", "key": "k", "value": b"\x00\xff", "partition": 2, "headers": [("a", b"1"), ("a", None)]},
        {"topic": "columns", "key": None, "value": None, "partition": 1, "headers": []},
        {"topic": "other", "key": "", "value": b"", "partition": None, "headers": None},
    )
    assert writer.write(iter([batch])).records == 3
    found = [
        (got.topic(), got.partition(), got.key(), got.value(), got.headers())
        for got in [*everything(bootstrap, "columns", 3), *everything(bootstrap, "other", 1)]
    ]
    assert found == [
        ("columns", 1, None, None, None),
        ("columns", 2, b"k", b"\x00\xff", [("a", b"1"), ("a", None)]),
        ("other", 0, b"", b"", None),
    ]


def test_keys_go_to_the_partitions_that_java_would_choose(bootstrap: str) -> None:
    """Java's murmur2 of these keys, as its own tests have it."""
    known = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    create_topic(bootstrap, "keyed", 7)
    batch = pa.RecordBatch.from_pydict({"key": list(known), "value": list(known)})
    batch_writer({"kafka.bootstrap.servers": bootstrap, "topic": "keyed"}, PLAIN).write(iter([batch]))
    found = {got.key().decode(): got.partition() for got in everything(bootstrap, "keyed", 7)}
    assert found == {key: (number & 0x7FFFFFFF) % 7 for key, number in known.items()}


def test_a_full_queue_is_waited_for(bootstrap: str) -> None:
    create_topic(bootstrap, "waited", 1)
    options = {"kafka.bootstrap.servers": bootstrap, "topic": "waited", "kafka.queue.buffering.max.messages": "100"}
    writer = batch_writer(options, PLAIN)
    assert writer.write(iter([plain(1_500), plain(1_500, first=1_500)])).records == 3_000
    assert [int(got.value()) for got in everything(bootstrap, "waited", 1)] == list(range(3_000)), "once, and in order"


def test_no_rows_are_no_records(bootstrap: str) -> None:
    writer = batch_writer({"kafka.bootstrap.servers": bootstrap, "topic": "columns"}, PLAIN)
    assert writer.write(iter([])).records == 0


@pytest.mark.parametrize(("limit", "size"), [("1048576", 2_000_000), ("1048576", 900_000)], ids=["here", "there"])
def test_a_record_that_is_too_large_says_so(bootstrap: str, limit: str, size: int) -> None:
    """The producer refuses the first, the topic the second."""
    create_topic(bootstrap, f"narrow-{size}", 1, {"max.message.bytes": "100000"})
    writer = batch_writer({"kafka.bootstrap.servers": bootstrap, "topic": f"narrow-{size}"}, PLAIN)
    large = pa.RecordBatch.from_pydict({"key": [None], "value": ["x" * size]}, PLAIN_ARROW)
    with pytest.raises(NotDelivered, match=rf"record of {size} bytes for narrow-{size}.*too large.*{limit} bytes"):
        writer.write(iter([large]))


def test_a_partition_that_is_not_there_fails_the_task(bootstrap: str) -> None:
    create_topic(bootstrap, "small", 1)
    writer = batch_writer({"kafka.bootstrap.servers": bootstrap}, SCHEMA)
    batch = rows({"topic": "small", "value": b"x", "partition": 9})
    with pytest.raises(NotDelivered, match=r"A record for small-9 was not delivered.*_UNKNOWN_PARTITION") as failed:
        writer.write(iter([batch]))
    assert "\n" not in str(failed.value)


def test_a_cluster_that_does_not_answer_fails_the_task() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.delivery.timeout.ms": "300"}
    writer = batch_writer({**options, "kafka.linger.ms": "0"}, PLAIN)
    with pytest.raises(NotDelivered, match=r"A record for t.* was not delivered.*timed out"):
        writer.write(iter([plain(3)]))


def test_a_topic_is_not_overwritten() -> None:
    with pytest.raises(WrongOption, match="cannot be overwritten"):
        batch_writer({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}, PLAIN, overwrite=True)
