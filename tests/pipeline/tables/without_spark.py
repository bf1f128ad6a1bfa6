"""Batches without Spark: a job that deals rows to tasks in this process, so that a hundred batches take a second."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from klamm.pipeline.tables import job, task
from klamm.pipeline.tables.places import AS_MANY, to_merge
from klamm.pipeline.tables.work import Report, Work


class Reading:
    """As much of `spark.read` as tables use."""

    _schema: StructType | None = None

    def schema(self, schema: StructType) -> "Reading":
        self._schema = schema
        return self

    def parquet(self, *paths: str) -> "Rows":
        schema = self._schema or from_arrow_schema(pq.read_schema(paths[0]))
        arrow = to_arrow_schema(schema, timezone="UTC")
        return Rows(schema, pa.concat_tables([pq.read_table(path, schema=arrow) for path in paths]))


def session(cores: int) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores), read=Reading())


@dataclass
class Rows:
    """A data frame, as far as tables look at one before the job."""

    schema: StructType
    table: pa.Table
    sparkSession: Any = field(default_factory=lambda: session(2))  # noqa: N815


def rows_of(rows: Sequence[tuple[Any, ...]], schema: StructType) -> Any:
    arrow = to_arrow_schema(schema, timezone="UTC")
    return Rows(schema, pa.Table.from_pylist([dict(zip(arrow.names, row, strict=True)) for row in rows], arrow))


def run(rows: Any, work: Work, cores: int) -> Report:
    """In place of `job.run`."""
    table = rows.table.select(work.schema.names)
    if work.mode == "append":
        merged = to_merge(work.files)[:AS_MANY] if work.may_merge else []
        return _together(task.append(work, table.to_batches(), merged))
    count = table.num_rows
    buckets = [zlib.crc32(repr(list(row.values())).encode()) for row in table.select(list(work.key)).to_pylist()]
    dealt = pa.array([bucket % work.buckets for bucket in buckets], pa.int32())
    table = table.append_column(task.ORDER, pa.array(range(count), pa.int64())).append_column(task.BUCKET, dealt)
    reports = []
    for bucket in range(work.buckets):
        mask = pa.array([one == bucket for one in dealt.to_pylist()], pa.bool_())
        reports.append(task.merge_in(work, table.filter(mask).to_batches(max_chunksize=7)))
    return _together(*reports)


def _together(*reports: Any) -> Report:
    return Report.of_all([text for one in reports for batch in one for text in batch.column(0).to_pylist()])


assert job.run.__annotations__.keys() == run.__annotations__.keys()
