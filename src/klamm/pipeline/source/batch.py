"""A batch query: a piece of the past, from where the options say up to where they say."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from klamm.pipeline.kafka.access import opened
from klamm.pipeline.source.limits import Kind
from klamm.pipeline.source.options import batch_options
from klamm.pipeline.source.planning import batch_ranges, split
from klamm.pipeline.source.standing import Asking
from klamm.pipeline.source.tasks import RangePartition, rows

if TYPE_CHECKING:
    import pyarrow as pa


class KlammBatchReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = batch_options(options)

    def partitions(self) -> list[InputPartition]:
        options = self._options
        access = opened(options.cluster, options.reader)
        try:
            asking = Asking(options, access)
            now = asking.standing()
            start = asking.resolved(options.starting, now, is_start=True)
            end = asking.resolved(options.ending, now, is_start=False)
        finally:
            access.close()
        pieces = batch_ranges(start, end, now, may_begin_later=options.starting.kind is Kind.EARLIEST)
        found = split(pieces, options.min_partitions, options.max_records_per_partition)
        return [RangePartition(piece) for piece in found] or [RangePartition(None)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return rows(self._options, partition)
