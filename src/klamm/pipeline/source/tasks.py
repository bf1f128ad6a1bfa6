"""What Spark sends to a worker, and what the worker does with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from klamm.pipeline.kafka.access import opened
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.source.options import SourceOptions
from klamm.pipeline.source.reading import read

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class RangePartition(InputPartition):
    """A task's range. `piece` is None where there is nothing to read: Spark wants one task all the same."""

    piece: Range | None


def rows(options: SourceOptions, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    assert isinstance(partition, RangePartition)
    if partition.piece is None:
        return
    access = opened(options.cluster, options.reader)
    try:
        yield from read(access, partition.piece, options.include_headers, options.fail_on_data_loss)
    finally:
        access.close()
