"""What Spark calls: a writer for a batch, and one for a stream. They are the same, for now.

The driver makes one, which checks options and columns before anything is written, and sends it to the tasks; each task
calls `write` with its rows and reports how many there were. There is nothing left to commit then: what was acknowledged
is in the topic, whatever happens to the rest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from klamm.pipeline.sink.columns import columns_of
from klamm.pipeline.sink.delivery import AtLeastOnce
from klamm.pipeline.sink.problems import WrongOption
from klamm.pipeline.sink.settings import producer_settings, topic_of


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool = False) -> DataSourceArrowWriter:
    if overwrite:
        raise WrongOption(
            'A topic cannot be overwritten: records are only ever appended. Write with mode("append"); to begin anew, '
            "delete the topic and create it again."
        )
    return BatchWriter(options, schema)


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    return StreamWriter(options, schema)


@dataclass
class Written(WriterCommitMessage):
    """A task's last word to the driver."""

    records: int


class _Task:
    """Travels to the tasks: plain values. The producer is made where it is used."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._columns = columns_of(schema, topic_of(options))
        self._settings = producer_settings(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        delivered = AtLeastOnce(self._settings).deliver(map(self._columns.records, iterator))
        return Written(delivered.records)


class BatchWriter(_Task, DataSourceArrowWriter):
    """For `DataFrame.write`."""


class StreamWriter(_Task, DataSourceStreamArrowWriter):
    """For `DataFrame.writeStream`; a batch that Spark begins again is written again."""
