"""A batch as one Spark job: the rows are dealt to tasks, each task writes its files, small reports come back."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import functions as f

from klamm.pipeline.tables import task
from klamm.pipeline.tables.places import AS_MANY, to_merge
from klamm.pipeline.tables.work import Report, Work

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def run(rows: "DataFrame", work: Work, cores: int) -> Report:
    frame = _appended(rows, work, cores) if work.mode == "append" else _merged_in(rows, work)
    return Report.of_all([row.report for row in frame.collect()])


def _appended(rows: "DataFrame", work: Work, cores: int) -> "DataFrame":
    """No more tasks than can run at once: each writes a file."""
    old = to_merge(work.files) if work.may_merge else []
    chunks = [old[start : start + AS_MANY] for start in range(0, len(old), AS_MANY)]

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        mine = chunks[context.partitionId() :: cores]
        return task.append(work, batches, [file for chunk in mine for file in chunk])

    return rows.select([_column(name) for name in work.schema.names]).coalesce(cores).mapInArrow(write, "report string")


def _merged_in(rows: "DataFrame", work: Work) -> "DataFrame":
    """The bucket is what `repartition` computes too; tasks are told, and check that it is only one."""
    keys = [_column(name) for name in work.key]
    bucket = f.pmod(f.hash(*keys), f.lit(work.buckets))
    order = f.monotonically_increasing_id()
    columns = [*(_column(name) for name in work.schema.names), order.alias(task.ORDER), bucket.alias(task.BUCKET)]

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        return task.merge_in(work, batches)

    return rows.select(columns).repartition(work.buckets, *keys).mapInArrow(write, "report string")


def _column(name: str) -> "Column":
    return f.col(f"`{name.replace('`', '``')}`")
