"""The floor of a stream: the same batches, decoded by the same code in the same kind of task, but without a network.

The broker's own files are read, which hold the bytes that a fetch would bring. What is left is what Spark and the
decoding cost; no source in Python can be quicker than this.
"""

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from klamm.pipeline.decoding import Decoder
from klamm.pipeline.source.columns import spark_schema

AT_ONCE_BYTES = 4 << 20
"""As much as a fetch may bring."""
_HEAD = struct.Struct(">qi")
_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23


class Floor(DataSource):
    """Options: `directory` of a broker, `topic`, `partitions`, `records` (in each), `maxOffsetsPerTrigger`."""

    @classmethod
    def name(cls) -> str:
        return "floor"

    def schema(self) -> StructType:
        return spark_schema(False)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return FloorReader(self.options)


@dataclass
class Piece(InputPartition):
    partition: int
    start: int
    end: int


class FloorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._topic = options["topic"]
        self._directory = options["directory"]
        self._partitions = int(options["partitions"])
        self._records = int(options["records"])
        self._step = int(options["maxOffsetsPerTrigger"]) // self._partitions

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"offset": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Nothing comes any more."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._step)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {"offset": min(self._records, start["offset"] + self._step)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [Piece(number, start["offset"], end["offset"]) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Piece)
        decoder = Decoder(self._topic, partition.partition)
        for data in _fetches(self._directory, self._topic, partition):
            batches, _ = decoder.decode(data, partition.start, partition.end)
            yield from batches


def _fetches(directory: str, topic: str, piece: Piece) -> Iterator[memoryview]:
    """Whole batches that reach into the piece, some megabytes at a time."""
    for segment in sorted(Path(directory, f"{topic}-{piece.partition}").glob("*.log")):
        with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            begin = position = 0
            while position < len(data):
                base, length = _HEAD.unpack_from(data, position)
                (delta,) = _LAST_OFFSET_DELTA.unpack_from(data, position + _LAST_OFFSET_DELTA_AT)
                following = position + _HEAD.size + length
                if base + delta < piece.start:
                    begin = following
                elif base >= piece.end:
                    break
                elif following - begin > AT_ONCE_BYTES:
                    yield memoryview(data[begin:following])
                    begin = following
                position = following
            if position > begin:
                yield memoryview(data[begin:position])
