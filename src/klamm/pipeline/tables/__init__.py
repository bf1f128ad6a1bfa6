"""Tables that hold each row once, written from `foreachBatch`: executors write the files, the driver only commits.

A batch is one Spark job. Its tasks look up which keys are there already, write Parquet files into the table's directory
and report them; the driver adds them to the table together with the application's name and the batch's number, all or
nothing. A batch that is in the table is not written again. So a driver may die anywhere: what was not committed is not
in the table, and what was committed is skipped.

`application` has to be a name that belongs to the query's checkpoint (the id of the query is one). Batch numbers start
again with a new checkpoint, and under an old name the first batches would be taken for done.
"""

from typing import TYPE_CHECKING, Protocol

from klamm.pipeline.tables.fitting import DoesNotFit
from klamm.pipeline.tables.places import directory_of
from klamm.pipeline.tables.work import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["DoesNotFit", "TableSink", "Written", "open_table"]

FORMATS = ("delta", "parquet")
ON_MATCH = ("ignore", "update")


class TableSink(Protocol):
    """A table that batches are written to, exactly once for an application and the number of a batch."""

    def write(self, rows: "DataFrame", batch_id: int) -> Written: ...

    def new_columns(self, rows: "StructType") -> list[str]:
        """Those that such rows would bring to a table that is there; DoesNotFit if they do not fit it."""
        ...


def open_table(
    spark: "SparkSession",
    path: str,
    *,
    format: str = "delta",  # noqa: A002
    key: tuple[str, ...] = (),
    on_match: str = "ignore",
    application: str,
) -> TableSink:
    """A table to write batches to; made by its first batch.

    Without a key rows are appended. With one there is a row a key: `ignore` keeps the first that came, `update` the
    last. Of several rows of one batch these are the first and the last in the order of the data frame.
    """
    if format not in FORMATS:
        raise ValueError(f"a table's format is {' or '.join(FORMATS)}, not {format!r}")
    if on_match not in ON_MATCH:
        raise ValueError(f"on_match is {' or '.join(ON_MATCH)}, not {on_match!r}")
    if format == "parquet" and key and on_match == "update":
        raise ValueError(
            f"the Parquet table {path} cannot replace rows: its files are only ever added to. "
            'Use format="delta" for on_match="update", or on_match="ignore".'
        )
    directory = directory_of(path)
    mode = on_match if key else "append"
    if format == "delta":
        from klamm.pipeline.tables.delta import DeltaSink

        return DeltaSink(spark, directory, tuple(key), mode, application)
    from klamm.pipeline.tables.parquet import ParquetSink

    return ParquetSink(spark, directory, tuple(key), mode, application)
