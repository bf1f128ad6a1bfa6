"""Each record is good, or there is a reason in words, and its bytes are kept as they came."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from klamm.pipeline import Pipeline, Source, Table, parsing
from klamm.pipeline.loading import loaded
from klamm.pipeline.planning import RECORD
from klamm.pipeline.problems import BadPipeline
from klamm.pipeline.trying import tried
from tests.pipeline.runner.shop import FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id string not null, total decimal(12,2), n int, lines array<struct<a: int>>, key string, timestamp timestamp"
CHECKS = {
    "has a negative total": "total >= 0",
    "has no lines": "size(lines) > 0",
    "has a strange n": "n is null or 10 / n > 0",
    "has a strange key": "key is null or key = 'k' or cast(key as int) > 0 or array(1)[cast(key as int)] = 1",
}
GOOD = {"id": "a", "total": 1.5, "lines": [{"a": 1}], "timestamp": "2026-01-01T00:00:00Z", "key": "k"}
REFUSED = {
    b'{"id": "a", "tot': "is not JSON",
    b"": "is not JSON",
    b"\xff\xfe{": "is not UTF-8",
    b"{'id': 'a'}": "is not JSON",
    b"null": "is no JSON object",
    b"[1]": "is no JSON object",
    b'"orders {"': "is no JSON object",
    b'\n\t{"id": "a", "lines": {}}': "does not fit the schema: lines is no array<struct<a:int>>",
    b'{"id": "a", "total": "x", "n": "y"}': "does not fit the schema: total is no decimal(12,2), n is no int",
    b'{"id": "a", "lines": [{"a": "x"}]}': "does not fit the schema: lines.a is no int",
    b'{"id": "a", "lines": [{"a": 1}, {"a": []}, {"a": 2.5}], "n": "y"}': (
        "does not fit the schema: n is no int, lines.a is no int"
    ),
    b'{"total": 1}': "does not fit the schema: id is missing",
    b'{"id": "a", "total": -1, "lines": [{"a": 1}]}': "has a negative total",
    b'{"id": "a", "lines": [{"a": 1}]}': "has a negative total",
    b'{"id": "a", "total": 1}': "has no lines",
    # What Spark would stop for.
    b'{"id": "a", "total": 1, "lines": [{"a": 1}], "n": 0}': "has a strange n",
    b'{"id": "a", "total": 1, "lines": [{"a": 1}], "key": "x"}': "has a strange key",
    b'{"id": "a", "total": 1, "lines": [{"a": 1}], "key": "-7"}': "has a strange key",
    # Good ones with something behind them.
    b'{"id": "a", "total": 1, "lines": [{"a": 1}]} x': "is not JSON",
    b'{"id": "a", "total": 1, "lines": [{"a": 1}]}}': "is not JSON",
    b'{"id": "a", "total": 1, "lines": [{"a": 1}]},': "is not JSON",
    b'{"id": "a", "total": 1, "lines": [{"a": 1}]}\n{"id": "b", "total": 1, "lines": [{"a": 1}]}': "is not JSON",
}


def everything(orders: "DataFrame") -> "DataFrame":
    return orders.select("id", "total", "key", "source.offset")


PIPELINE = Pipeline(
    name="shop", sources=[Source("orders", json=SCHEMA, checks=CHECKS)], outputs=[Table("all", everything)]
)


def test_reasons(spark: "SparkSession") -> None:
    last = b' {"id": 5, "total": "2", "lines": [{"a": 2}]} \n'
    frames = PIPELINE.apply(spark, {"orders": [GOOD, None, *REFUSED, last]})
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    found = [tuple(row) for row in frames["all"].orderBy("offset").collect()]
    assert [(row[0], float(row[1]), row[2], row[3]) for row in found] == [
        ("a", 1.5, "k", 0),
        ("5", 2.0, None, len(REFUSED) + 2),
    ]
    quarantined = frames["orders_quarantine"].orderBy("offset").collect()
    assert frames["orders_quarantine"].columns == [
        "topic", "partition", "offset", "timestamp", "key", "value", "reason"
    ]  # fmt: skip
    assert quarantined[0].value is None and quarantined[0].reason == "has no value (a tombstone)"
    assert {bytes(row.value): row.reason for row in quarantined[1:]} == REFUSED


DEEP = """
    a struct<b: struct<c: int, d: array<int>, e: map<string, int>>>,
    s array<array<struct<t: date>>>,
    f struct<`g h`: int>
"""


def all_of_it(orders: "DataFrame") -> "DataFrame":
    return orders


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ('{"a": {"b": {"c": "x"}}}', ": a.b.c is no int"),
        (
            '{"a": {"b": {"c": 1, "d": [1, "x"], "e": {"k": []}}}}',
            ": a.b.d is no array<int>, a.b.e is no map<string,int>",
        ),
        (
            '{"a": {"b": 7}, "f": {"g h": {}}}',
            ": a.b is no struct<c:int,d:array<int>,e:map<string,int>>, f.g h is no int",
        ),
        ('{"s": [[], [{"t": "2026-01-01"}, 5]]}', ": s is no array<array<struct<t:date>>>"),
        # So deep nobody looks.
        ('{"s": [[{"t": "tomorrow"}]]}', ""),
    ],
)
def test_fields_of_fields_are_named(spark: "SparkSession", record: str, fields: str) -> None:
    pipeline = Pipeline(name="deep", sources=[Source("orders", json=DEEP)], outputs=[Table("all", all_of_it)])
    (row,) = pipeline.apply(spark, {"orders": [record]})["orders_quarantine"].collect()
    assert row.reason == f"does not fit the schema{fields}"


def test_a_source_that_there_is_not(spark: "SparkSession") -> None:
    with pytest.raises(BadPipeline, match="Did you mean `orders`"):
        PIPELINE.apply(spark, {"order": []})


def test_examples_and_expectations(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FILE)
    results = {result.label: result for result in tried(loaded(tmp_path / "shop.py").pipeline, spark)}
    assert not any(result.complaint for result in results.values())
    assert [row["sku"] for row in results["table line_items"].rows] == ["s", "t"]
    assert [row["orders"] for row in results["table revenue"].rows] == [1]
    assert [row["reason"] for row in results["table orders_quarantine"].rows] == ["is not JSON", "has a negative total"]


def test_a_record_whose_time_spark_cannot_hold_has_a_place_in_quarantine(spark: "SparkSession") -> None:
    """The time is a part of the table's key, and a key that is null stops a batch, today and at every restart."""
    records = spark.createDataFrame([(None, b"{", "orders", 0, 5, None, 0)], RECORD)
    (row,) = parsing.refused(parsing.judged(records, PIPELINE.sources[0])).collect()
    assert round(row.timestamp.timestamp() * 1000) == -1 and row.offset == 5 and bytes(row.value) == b"{"
    assert [*row.asDict()] == ["topic", "partition", "offset", "timestamp", "key", "value", "reason"]
