"""A batch that was committed to its table, and that Spark runs again because it was killed before it knew."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from klamm.pipeline.declaration import Source, Table
from klamm.pipeline.flow import Flow
from klamm.pipeline.planning import PlannedQuery
from klamm.pipeline.tables import Written
from klamm.pipeline.writing import BatchWriter, Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def hours(orders: "DataFrame") -> "DataFrame":
    import pyspark.sql.functions as f

    counted = orders.withWatermark("at", "10 minutes").groupBy(f.window("at", "1 hour")).count()
    return counted.select(f.col("window.start").alias("hour"), "count")


FLOW = Flow(["orders"], [hours])
QUERY = PlannedQuery(
    "hours",
    (Source("orders"),),
    (Table("hours", hours, key="hour", on_match="update"),),
    None,
    ("Aggregate",),
    "update",
)


class Killed(Exception):  # noqa: N818
    pass


class Kept:
    """A table that knows the batches it has."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int]]] = {}

    def write(self, rows: "DataFrame", batch_id: int) -> Written:
        if batch_id in self.batches:
            return Written(was_done=True)
        self.batches[batch_id] = sorted((row["hour"].hour, row["count"]) for row in rows.collect())
        return Written(len(self.batches[batch_id]))


def run(spark: "SparkSession", place: Path, table: Kept, *, dies: bool = False) -> list[dict[str, Any]]:
    """To the end of what there is; the reports of Spark."""
    writer = BatchWriter(QUERY, FLOW, Gate(), {"hours": table}, lambda *each: None)

    def batch(rows: "DataFrame", batch_id: int) -> None:
        writer(rows, batch_id)
        if dies:
            raise Killed

    stream = hours(spark.readStream.schema("at timestamp").json(str(place / "orders"))).writeStream.outputMode("update")
    query = stream.trigger(availableNow=True).option("checkpointLocation", str(place / "c")).foreachBatch(batch).start()
    query.awaitTermination()
    return [json.loads(report.json) for report in query.recentProgress]


def test_state_moves_on_though_the_table_has_the_batch(spark: "SparkSession", tmp_path: Path) -> None:
    table, orders = Kept(), tmp_path / "orders"
    orders.mkdir()
    (orders / "first.json").write_text('{"at": "2026-01-01T10:30:00Z"}\n{"at": "2026-01-01T10:40:00Z"}\n')
    with pytest.raises(Exception, match="Killed"):
        run(spark, tmp_path, table, dies=True)
    assert len(table.batches) == 1
    (orders / "second.json").write_text('{"at": "2026-01-01T10:50:00Z"}\n')
    watermarks = {report["batchId"]: report["eventTime"]["watermark"] for report in run(spark, tmp_path, table)}
    assert watermarks[1] == "2026-01-01T10:30:00.000Z"
    assert [batch[0][1] for _, batch in sorted(table.batches.items()) if batch] == [2, 3]
