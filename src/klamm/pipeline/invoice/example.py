"""Invoices from the tills of some shops: kept, counted, and rewarded.

    klamm pipeline generate --count 100000           invoices to try it with
    klamm pipeline run FILE.py --once                what has come so far
    klamm pipeline run FILE.py                       and what is to come

Copy this file and make it yours. A transform takes data frames and gives one back; the name of a parameter says where
it reads from. What is no invoice goes to quarantine, with the reason.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from klamm.pipeline import Pipeline, Source, Table, Topic

INVOICE = """
    invoice_number string not null,
    store_id string not null,
    customer_id string,
    issued_at timestamp not null,
    line_items array<struct<product: string, quantity: int, unit_price: decimal(12,2), amount: decimal(12,2)>> not null,
    total decimal(12,2) not null
"""
CHECKS = {
    "it has no lines": "size(line_items) > 0",
    "a line is not quantity times price": "forall(line_items, line -> line.amount = line.quantity * line.unit_price)",
    "the total is not the sum of its lines": """
        total = aggregate(line_items.amount, cast(0 as decimal(12,2)), (sum, each) -> cast(sum + each as decimal(12,2)))
    """,
}
EXAMPLE = {
    "invoice_number": "1",
    "store_id": "S007",
    "customer_id": "C00042",
    "issued_at": "2026-01-01T10:04:00Z",
    "line_items": [
        {"product": "Milch", "quantity": 2, "unit_price": 1.19, "amount": 2.38},
        {"product": "Honig", "quantity": 1, "unit_price": 5.40, "amount": 5.40},
    ],
    "total": 7.78,
}


def invoices(invoice: DataFrame) -> DataFrame:
    """One row an invoice, late or not."""
    return invoice.select(
        "invoice_number", "store_id", "customer_id", "issued_at", f.size("line_items").alias("lines"), "total"
    )


def line_items(invoice: DataFrame) -> DataFrame:
    """One row a line."""
    return invoice.select(
        "invoice_number", "store_id", "issued_at", f.posexplode("line_items").alias("position", "line")
    ).select("invoice_number", (f.col("position") + 1).alias("line_number"), "store_id", "issued_at", "line.*")


def store_revenue(invoice: DataFrame) -> DataFrame:
    """What each store took in each ten minutes. An hour later the books are closed."""
    return (
        invoice.withWatermark("issued_at", "1 hour")
        .dropDuplicates(["invoice_number", "issued_at"])
        .groupBy("store_id", f.window("issued_at", "10 minutes"))
        .agg(f.sum("total").alias("revenue"), f.count("*").alias("invoices"))
        .select("store_id", f.col("window.start").alias("window_start"), "revenue", "invoices")
    )


def store_revenue_messages(store_revenue: DataFrame) -> DataFrame:
    return store_revenue.select(f.col("store_id").alias("key"), f.to_json(f.struct("*")).alias("value"))


def loyalty(invoice: DataFrame) -> DataFrame:
    """One row a customer with a card: the points so far."""
    return (
        invoice.where("customer_id is not null")
        .select("customer_id", "invoice_number", "total")
        .groupBy("customer_id")
        .transformWithState(
            statefulProcessor=Points(),
            outputStructType="customer_id string, points bigint, invoices bigint",
            outputMode="Update",
            timeMode="None",
        )
    )


class Points(StatefulProcessor):
    """A point for every whole euro of an invoice. An invoice that comes again is known by its number."""

    remembered = 1_000

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.account = handle.getValueState("account", "points bigint, invoices bigint, numbers array<string>")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        points, invoices, numbers = self.account.get() or (0, 0, [])
        known = set(numbers)
        fresh = {row.invoice_number: int(row.total) for row in rows if row.invoice_number not in known}
        points, invoices = points + sum(fresh.values()), invoices + len(fresh)
        self.account.update((points, invoices, [*numbers, *fresh][-self.remembered :]))
        yield Row(customer_id=key[0], points=points, invoices=invoices)

    def close(self) -> None:
        pass


pipeline = Pipeline(
    name="invoice",
    sources=[
        Source(
            "invoice",
            json=INVOICE,
            checks=CHECKS,
            examples=[EXAMPLE, EXAMPLE, {**EXAMPLE, "total": 7.79}, "not an invoice"],
        )
    ],
    steps=[store_revenue],
    outputs=[
        Table("invoices", invoices, key="invoice_number"),
        Table("line_items", line_items, key=("invoice_number", "line_number")),
        Table(
            "store_revenue",
            store_revenue,
            key=("store_id", "window_start"),
            on_match="update",
            expect=[
                {"store_id": "S007", "revenue": 7.78, "invoices": 1},
            ],
        ),
        Topic("store-revenue", store_revenue_messages),
        Table(
            "loyalty",
            loyalty,
            key="customer_id",
            on_match="update",
            expect=[
                {"customer_id": "C00042", "points": 7, "invoices": 1},
            ],
        ),
    ],
)
