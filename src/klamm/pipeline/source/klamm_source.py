"""The data source that Spark knows as `klamm`: what it reads is here, what it writes is the sink's."""

from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from klamm.pipeline.source.batch import KlammBatchReader
from klamm.pipeline.source.columns import spark_schema
from klamm.pipeline.source.options import include_headers
from klamm.pipeline.source.problems import WrongOption
from klamm.pipeline.source.stream import KlammStreamReader


class KlammSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "klamm"

    def schema(self) -> StructType:
        return spark_schema(include_headers(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        self._check(schema)
        return KlammBatchReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        self._check(schema)
        return KlammStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from klamm.pipeline.sink import batch_writer

        return batch_writer(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        from klamm.pipeline.sink import stream_writer

        return stream_writer(self.options, schema)

    def _check(self, schema: StructType) -> None:
        if schema != self.schema():
            raise WrongOption(
                "The columns of a topic are fixed (key, value, topic, partition, offset, timestamp, timestampType, and "
                "headers with includeHeaders=true). Leave .schema(...) out and take the value apart afterwards, for "
                "instance with from_json."
            )
