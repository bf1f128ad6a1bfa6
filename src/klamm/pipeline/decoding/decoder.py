"""The door: the bytes of one partition in a Fetch response in, Arrow record batches and the next offset out.

What comes out holds nothing of what came in, so the buffer may be used again. A response with anything damaged in it
gives no rows at all, but `InvalidBatch`: to read on from the last offset is to meet the damage again.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from klamm.pipeline.decoding.columns import Fields, fields_at, keys_and_values, timestamp_column
from klamm.pipeline.decoding.gathering import ENOUGH_ROWS, Gathered, gathered
from klamm.pipeline.decoding.headers import headers_column
from klamm.pipeline.decoding.scanning import record_positions
from klamm.pipeline.decoding.schema import TIMESTAMP, arrow_schema
from klamm.pipeline.decoding.varints import Bytes, Numbers
from klamm.pipeline.decoding.walking import Visible, Walk
from klamm.records.invalid import InvalidBatch

MOST_ROWS = 2 * ENOUGH_ROWS
"""In one Arrow record batch: enough to forget what each costs, few enough for the columns to stay in the cache."""

MOST_BYTES = 64 * 2**20
"""Of one Arrow record batch, whose offsets count to 2**31. A single record may be larger."""


class Decoder:
    """Of one partition of one topic; any number of responses."""

    def __init__(self, topic: str, partition: int, include_headers: bool = False) -> None:
        self._name = f"{topic}-{partition}"
        self._schema = arrow_schema(include_headers)
        self._include_headers = include_headers
        self._topics = pa.array([topic] * MOST_ROWS, type=pa.string())
        self._partitions = pa.array(np.full(MOST_ROWS, partition, dtype=np.int32))
        self._create_time = pa.array(np.zeros(MOST_ROWS, dtype=np.int32))

    def decode(
        self, records: memoryview, start: int, end: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> tuple[list[pa.RecordBatch], int]:
        """The rows with `start <= offset < end`, and the offset to fetch next.

        `records` holds whole batches, perhaps with a torn one behind them. `aborted` are (producer id, first offset) of
        the response when only what is committed is read, else nothing.
        """
        walk = Walk(records, start, end, aborted)
        try:
            found = [batch for group in gathered(records, walk) for batch in self._decoded(group, start, end)]
        except InvalidBatch as error:
            raise InvalidBatch(error.code, f"{self._name}: {error.message}") from error
        return found, walk.next_offset

    def _decoded(self, group: Gathered, start: int, end: int) -> Iterator[pa.RecordBatch]:
        buffer = np.frombuffer(group.buffer, dtype=np.uint8)
        view = memoryview(group.buffer)
        columns = np.array(group.batches, dtype=np.int64).T
        counts = columns[Visible._fields.index("rows")]
        positions = record_positions(buffer, group.begins, group.ends, counts.tolist())
        base_offsets, last_deltas, timestamps, append_times = np.repeat(columns[-4:], counts, axis=1)
        for rows in _chunks(positions, group.ends[-1]):
            fields = fields_at(
                buffer, positions[rows], base_offsets[rows], last_deltas[rows], timestamps[rows], append_times[rows]
            )
            first, behind = np.searchsorted(fields.offsets, (start, end)).tolist()
            if first >= behind:
                continue
            if behind - first < len(fields.offsets):
                fields, append_times_here = fields[first:behind], append_times[rows][first:behind]
            else:
                append_times_here = append_times[rows]
            yield self._record_batch(buffer, view, fields, append_times_here)

    def _record_batch(self, buffer: Bytes, view: memoryview, fields: Fields, append_times: Numbers) -> pa.RecordBatch:
        rows = len(fields.offsets)
        columns = [
            *keys_and_values(view, fields),
            self._topics[:rows],
            self._partitions[:rows],
            pa.array(fields.offsets),
            timestamp_column(fields.timestamps, TIMESTAMP),
            pa.array(append_times.astype(np.int32)) if append_times.any() else self._create_time[:rows],
        ]
        if self._include_headers:
            columns.append(headers_column(buffer, view, fields))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


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
