"""What Spark sends to a worker, and what the worker does with it.

Spark keeps its Python workers, and a worker keeps its connections: the next task begins with its first fetch. A worker
has one task at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from klamm.pipeline.kafka.access import Access, opened
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings
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
    yield from read(_kept(options), partition.piece, options.include_headers, options.fail_on_data_loss)


_accesses: dict[tuple[ClusterSettings, str], Access] = {}


def _kept(options: SourceOptions) -> Access:
    """This process's access to the cluster. One cluster at a time: whoever reads another lets the first go."""
    wanted = options.cluster, options.reader
    if wanted not in _accesses:
        while _accesses:
            _accesses.popitem()[1].close()
        _accesses[wanted] = opened(*wanted)
    return _accesses[wanted]
