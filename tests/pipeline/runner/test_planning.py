"""Which queries a pipeline becomes, and what is found out before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from klamm.pipeline import Pipeline, Source, Table, Topic, checking
from klamm.pipeline.loading import loaded
from klamm.pipeline.planning import planned
from klamm.pipeline.problems import BadPipeline
from tests.pipeline.runner.shop import FILE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id string, store string, total double, at timestamp"


def by_id(orders: "DataFrame") -> "DataFrame":
    return orders.select("id", "total")


def of_unknown(orders: "DataFrame") -> "DataFrame":
    return orders.select("id", "totl")


def sums(orders: "DataFrame") -> "DataFrame":
    return orders.groupBy("store").sum("total").withColumnRenamed("sum(total)", "total")


def rounded(sums: "DataFrame") -> "DataFrame":
    return sums.selectExpr("store", "round(total) as total")


def sorted_ones(orders: "DataFrame") -> "DataFrame":
    return orders.orderBy("total")


def unsold(orders: "DataFrame") -> "DataFrame":
    return orders.exceptAll(orders.where("total > 0"))


def not_the_first(orders: "DataFrame") -> "DataFrame":
    return orders.offset(3)


def numbered(orders: "DataFrame") -> "DataFrame":
    import pyspark.sql.functions as f

    return orders.withColumn("number", f.monotonically_increasing_id())


def matched(orders: "DataFrame") -> "DataFrame":
    return orders.groupBy("id").cogroup(orders.groupBy("id")).applyInArrow(lambda left, right: left, SCHEMA)


def both(orders: "DataFrame", returns: "DataFrame") -> "DataFrame":
    return orders.select("id").union(returns.select("id"))


def unique(orders: "DataFrame") -> "DataFrame":
    return orders.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])


def of(*outputs: Any, **more: Any) -> Pipeline:
    return Pipeline(name="shop", **{"sources": [Source("orders", json=SCHEMA)], "outputs": outputs, **more})


def test_a_query_for_what_has_no_state_and_one_for_each_that_has(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FILE)
    plan = planned(spark, loaded(tmp_path / "shop.py").pipeline)
    assert [(query.name, [output.label for output in query.outputs], query.mode) for query in plan.queries] == [
        ("orders", ["table orders", "table line_items"], "append"),
        ("revenue", ["table revenue", "topic revenue"], "update"),
    ]
    assert plan.queries[0].quarantines is not None and plan.queries[1].quarantines is None
    assert plan.queries[1].operators[0].startswith("Aggregate(")
    assert plan.schemas["table revenue"].simpleString() == (
        "struct<store:string,hour:timestamp,revenue:decimal(18,2),orders:bigint>"
    )
    text = checking.told(plan)
    assert "query revenue reads orders and keeps state (Aggregate), update mode" in text
    assert "table orders_quarantine and topic orders.quarantine" in text
    assert checking.document(plan)["queries"][1]["outputs"][0]["columns"]["orders"] == "bigint"


def test_what_only_reshapes_goes_with_it_and_two_sources_are_a_query(spark: "SparkSession") -> None:
    sources = [Source("orders", json=SCHEMA), Source("returns"), Source("idle")]
    table = Table("ids", both)
    with pytest.raises(BadPipeline, match=r"`both` \(test_planning.py.*`id`"):
        planned(spark, of(table, sources=sources))
    sources[1] = Source("returns", json=SCHEMA)
    sums_of = Table("sums", rounded, key="store", on_match="update")
    plan = planned(spark, of(table, sums_of, Table("unique", unique), steps=[sums, by_id], sources=sources))
    assert [query.name for query in plan.queries] == ["orders", "returns", "sums", "both", "unique"]
    assert [len(query.outputs) for query in plan.queries] == [0, 0, 1, 1, 1]
    assert plan.unused == ("idle", "by_id")


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([Table("all", of_unknown)], r"`of_unknown` \(test_planning.py, line \d+\).*`totl`.*`total`"),
        ([Table("all", by_id, key="ID_")], "the key names a column `ID_`, which `by_id` does not give"),
        ([Table("all", by_id, key="total")], "table all: .*total of type double, which cannot be compared exactly"),
        ([Topic("all", by_id)], "`by_id` gives id, total, and no column `value`.*f.to_json"),
        (
            [Table("all", sums, key="store")],
            'sends a row again whenever it changes.*keeps the first.*on_match="update"',
        ),
        ([Table("all", sums)], "would keep them all"),
        ([Table("all", sorted_ones)], "`sorted_ones`.*does what Spark cannot do on a stream: .*[Ss]ort"),
        ([Table("all", unsold)], "`unsold`.*does what Spark cannot do on a stream: Except"),
        ([Table("all", not_the_first)], "`not_the_first`.*does what Spark cannot do on a stream: Offset"),
        ([Table("all", numbered)], "`numbered`.*does what Spark cannot do on a stream: .*monotonically_increasing_id"),
        ([Table("all", matched)], "`matched`.*only those that a batch happens to hold.*transformWithState"),
    ],
)
def test_what_does_not_fit(spark: "SparkSession", outputs: list[Any], said: str) -> None:
    with pytest.raises(BadPipeline, match=said) as refused:
        planned(spark, of(*outputs))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Source("orders", json="id strin"), "`json` is no schema that Spark understands"),
        (Source("orders", json=SCHEMA, checks={"bad": "totl > 0"}), "check 'bad': .*`totl`"),
        (Source("orders", json="source string"), "in the way of the struct"),
    ],
)
def test_a_source_that_makes_no_sense(spark: "SparkSession", source: Source, said: str) -> None:
    with pytest.raises(BadPipeline, match=said) as refused:
        planned(spark, of(Table("all", by_id), sources=[source]))
    assert "\n" not in str(refused.value)


def test_other_windows_and_other_sums_are_another_state(spark: "SparkSession") -> None:
    """Five minutes instead of one went unnoticed, and new sums replaced old ones of which they were a part."""
    import pyspark.sql.functions as f

    def computes(size: str, delay: str, total: Any) -> tuple[str, ...]:
        def sums(orders: "DataFrame") -> "DataFrame":
            windowed = orders.withWatermark("at", delay).groupBy(f.window("at", size).alias("w"))
            return windowed.agg(total.alias("total")).selectExpr("w.start as start", "total")

        (query,) = (
            each
            for each in planned(spark, of(Table("sums", sums, key="start", on_match="update"))).queries
            if each.name == "sums"
        )
        return query.computes

    first = computes("1 minute", "1 hour", f.sum("total"))
    assert first and first == computes("1 minute", "2 hours", f.sum("total")), "a watermark may wait longer"
    assert first != computes("5 minutes", "1 hour", f.sum("total"))
    assert first != computes("1 minute", "1 hour", f.max("total"))
