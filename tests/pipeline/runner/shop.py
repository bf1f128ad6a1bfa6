"""A shop's orders: a pipeline file with everything in it that the runner has to do, and records for it."""

import json
from collections.abc import Iterator
from typing import NamedTuple

FILE = '''
"""Orders of a shop."""

import pyspark.sql.functions as f
from pyspark.sql import DataFrame

from klamm.pipeline import Pipeline, Source, Table, Topic

SCHEMA = "id string not null, store string, total decimal(12,2), at timestamp, lines array<struct<sku: string>>"


def priced(orders: DataFrame) -> DataFrame:
    return orders.withColumn("gross", (f.col("total") * 1.2).cast("decimal(12,2)"))


def one_row_each(priced: DataFrame) -> DataFrame:
    return priced.select("id", "store", "total", "gross", "at")


def line_items(orders: DataFrame) -> DataFrame:
    return orders.select("id", f.posexplode("lines").alias("line", "item")).select("id", "line", "item.sku")


def revenue(orders: DataFrame) -> DataFrame:
    hours = orders.withWatermark("at", "10 minutes").groupBy(f.window("at", "1 hour"), "store")
    sums = hours.agg(f.sum("total").cast("decimal(18,2)").alias("revenue"), f.count("*").alias("orders"))
    return sums.select("store", f.col("window.start").alias("hour"), "revenue", "orders")


def revenue_messages(revenue: DataFrame) -> DataFrame:
    return revenue.select(f.col("store").alias("key"), f.to_json(f.struct("*")).alias("value"))


EXAMPLE = {"id": "a", "store": "x", "total": 3, "at": "2026-01-01T10:00:00Z", "lines": [{"sku": "s"}, {"sku": "t"}]}

pipeline = Pipeline(
    name="shop",
    sources=[
        Source(
            "orders",
            json=SCHEMA,
            checks={"has a negative total": "total >= 0"},
            examples=[EXAMPLE, "no", {"id": "b", "total": -1}],
        )
    ],
    steps=[priced],
    outputs=[
        Table("orders", one_row_each, key="id", expect=[{"id": "a", "gross": 3.6}]),
        Table("line_items", line_items, key=("id", "line")),
        Table("revenue", revenue, key=("store", "hour"), on_match="update"),
        Topic("revenue", revenue_messages),
    ],
)
'''

STORES = 5
CUT, NEGATIVE = 7, 8
"""Of every hundred, the records that are cut short, and those with a negative total."""


class Record(NamedTuple):
    value: bytes
    is_good: bool


def orders(first: int, count: int) -> Iterator[Record]:
    """Every tenth has come before: the same id, and the same value."""
    for number in range(first, first + count):
        order = number - 1 if number % 10 == 9 else number
        document = {
            "id": f"o{order}",
            "store": f"s{order % STORES}",
            "total": order % 97 + 0.5,
            "at": f"2026-01-01T10:{order % 60:02d}:00Z",
            "lines": [{"sku": "a"}, {"sku": f"b{order % 7}"}],
        }
        kind = order % 100
        if kind == NEGATIVE:
            document["total"] = -1
        value = json.dumps(document).encode()
        yield Record(value[:-9] if kind == CUT else value, kind not in (CUT, NEGATIVE))


class Expected(NamedTuple):
    ids: set[str]
    total: float
    lines: int
    quarantined: int


def expected(count: int) -> Expected:
    good = {json.loads(record.value)["id"]: json.loads(record.value) for record in orders(0, count) if record.is_good}
    return Expected(
        set(good),
        sum(order["total"] for order in good.values()),
        sum(len(order["lines"]) for order in good.values()),
        sum(not record.is_good for record in orders(0, count)),
    )
