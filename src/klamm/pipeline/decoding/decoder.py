"""The door: the bytes of one partition in a Fetch response in, Arrow record batches and the next offset out.

What comes out holds nothing of what came in, so the buffer may be used again. A response with anything damaged in it
gives no rows at all, but `InvalidBatch`: to read on from the last offset is to meet the damage again.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from klamm.pipeline.decoding.arrays import numbers_column, repeated_text
from klamm.pipeline.decoding.columns import Fields, fields_at, keys_and_values, timestamp_column
from klamm.pipeline.decoding.gathering import Gathered, gathered
from klamm.pipeline.decoding.headers import headers_column
from klamm.pipeline.decoding.scanning import record_positions
from klamm.pipeline.decoding.schema import TIMESTAMP, arrow_schema
from klamm.pipeline.decoding.varints import Bytes, Numbers
from klamm.pipeline.decoding.walking import Walk
from klamm.records.batch import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_AT,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP_AT,
)
from klamm.records.invalid import InvalidBatch

_HEADER = np.dtype(
    {
        "names": ["base_offset", "attributes", "last_offset_delta", "base_timestamp", "max_timestamp"],
        "formats": [">i8", ">i2", ">i4", ">i8", ">i8"],
        "offsets": [BASE_OFFSET_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT],
        "itemsize": HEADER_BYTES,
    }
)

MOST_ROWS = 16_384
"""In one Arrow record batch: enough to forget what each costs, few enough for the columns to stay in the cache."""

MOST_BYTES = 64 * 2**20
"""Of one Arrow record batch, whose offsets count to 2**31. A single record may be larger."""


class Decoder:
    """Of one partition of one topic; any number of responses."""

    def __init__(self, topic: str, partition: int, include_headers: bool = False) -> None:
        self._name = f"{topic}-{partition}"
        self._schema = arrow_schema(include_headers)
        self._include_headers = include_headers
        self._topics = repeated_text(topic, MOST_ROWS)
        self._partitions = numbers_column(np.full(MOST_ROWS, partition, dtype=np.int32), pa.int32())
        self._create_time = numbers_column(np.zeros(MOST_ROWS, dtype=np.int32), pa.int32())

    def decode(
        self, records: memoryview, start: int, end: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> tuple[list[pa.RecordBatch], int]:
        """The rows with `start <= offset < end`, and the offset to fetch next.

        `records` holds whole batches, perhaps with a torn one behind them. `aborted` are (producer id, first offset) of
        the response when only what is committed is read, else nothing.
        """
        response = np.frombuffer(records, dtype=np.uint8)
        walk = Walk(records, start, end, aborted)
        found: list[pa.RecordBatch] = []
        try:
            for group in gathered(records, walk):
                found += self._decoded(response, group, start, end)
        except InvalidBatch as error:
            raise InvalidBatch(error.code, f"{self._name}: {error.message}") from error
        return found, walk.next_offset

    def _decoded(self, response: Bytes, group: Gathered, start: int, end: int) -> Iterator[pa.RecordBatch]:
        buffer = np.frombuffer(group.buffer, dtype=np.uint8)
        view = memoryview(group.buffer)
        positions = record_positions(buffer, group.begins, group.ends, group.counts)
        shared = np.repeat(_shared(response, group.heads), group.counts, axis=1)
        for rows in _chunks(positions, group.ends[-1]):
            fields = fields_at(buffer, positions[rows], *shared[:, rows])
            first, behind = np.searchsorted(fields.offsets, (start, end)).tolist()
            if first < behind:
                yield self._record_batch(buffer, view, fields[first:behind])

    def _record_batch(self, buffer: Bytes, view: memoryview, fields: Fields) -> pa.RecordBatch:
        rows = len(fields.offsets)
        columns = [
            *keys_and_values(view, fields),
            self._topics[:rows],
            self._partitions[:rows],
            numbers_column(fields.offsets, pa.int64()),
            timestamp_column(fields.timestamps, TIMESTAMP),
            self._timestamp_types(fields),
        ]
        if self._include_headers:
            columns.append(headers_column(buffer, view, fields))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _timestamp_types(self, fields: Fields) -> pa.Array:
        if not fields.append_times.any():
            return self._create_time[: len(fields.offsets)]
        return numbers_column(fields.append_times.astype(np.int32), pa.int32())


def _shared(response: Bytes, heads: list[int]) -> Numbers:
    """What a batch's rows share: base offset, last offset delta, timestamp, and whether that is LogAppendTime."""
    # A header may start at any byte, so this is a view of all of them.
    anywhere = np.ndarray(len(response) - HEADER_BYTES + 1, dtype=_HEADER, buffer=response.data, strides=(1,))
    headers = anywhere[heads]
    append_time = (headers["attributes"] & LOG_APPEND_TIME_BIT) != 0
    timestamp = np.where(append_time, headers["max_timestamp"], headers["base_timestamp"])
    return np.array((headers["base_offset"], headers["last_offset_delta"], timestamp, append_time), dtype=np.int64)


def _chunks(positions: Numbers, end: int) -> Iterator[slice]:
    """Rows that make one Arrow record batch each: not too many, and not too many bytes from the first to the last."""
    first, total = 0, len(positions)
    if total <= MOST_ROWS and end - int(positions[0]) <= MOST_BYTES:
        yield slice(0, total)
        return
    while first < total:
        behind = int(np.searchsorted(positions, int(positions[first]) + MOST_BYTES))
        behind = min(max(behind - 1, first + 1), first + MOST_ROWS, total)
        yield slice(first, behind)
        first = behind
