"""The columns of some rows, from the positions of their records.

A record is its length, an unused byte, and then varints: timestamp and offset as differences from the batch's, key and
value each behind their length, of which a negative one means null, and the number of headers. Every step works on all
rows. Keys and values are not cut out one by one: one Arrow array lies over the raw bytes, with key, gap, value, gap
as its elements, and `take` copies the ones that are wanted.

Every step goes forward, so it is enough to look at the end whether a record kept within its length.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from klamm.errors import ErrorCode
from klamm.pipeline.decoding.arrays import numbers_column
from klamm.pipeline.decoding.varints import LONG_BYTES, Bytes, Flags, Numbers, numbers_at, signed
from klamm.records.invalid import InvalidBatch

_LARGEST_MS = (2**63 - 1) // 1000


@dataclass(slots=True)
class Fields:
    """Of each row: its numbers, and where in the buffer its parts are. A null key or value has a true `..._is_null`."""

    offsets: Numbers
    timestamps: Numbers
    append_times: Numbers
    key_starts: Numbers
    key_ends: Numbers
    key_is_null: Flags
    value_starts: Numbers
    value_ends: Numbers
    value_is_null: Flags
    header_counts: Numbers
    header_starts: Numbers
    ends: Numbers

    def __getitem__(self, rows: slice) -> "Fields":
        return Fields(*(getattr(self, name)[rows] for name in self.__slots__))


def fields_at(
    buffer: Bytes,
    positions: Numbers,
    base_offsets: Numbers,
    last_deltas: Numbers,
    base_timestamps: Numbers,
    append_times: Numbers,
) -> Fields:
    """Of the records at `positions`. The others are the batches' numbers, one for each record or one for all."""
    lengths, starts = numbers_at(buffer, positions)
    ends = starts + (lengths >> 1)
    timestamp_deltas, behind = numbers_at(buffer, starts + 1, LONG_BYTES)
    offset_deltas, behind = numbers_at(buffer, behind)
    key_lengths, key_starts = numbers_at(buffer, behind)
    key_is_null = (key_lengths & 1).astype(np.bool_)
    key_ends = key_starts + _sizes(key_lengths)
    value_lengths, value_starts = numbers_at(buffer, key_ends)
    value_is_null = (value_lengths & 1).astype(np.bool_)
    value_ends = value_starts + _sizes(value_lengths)
    header_counts, header_starts = numbers_at(buffer, value_ends)
    if (lengths & 1).any() or (header_starts > ends).any() or ((header_counts == 0) & (header_starts != ends)).any():
        raise _invalid("a record is longer or shorter than it says")
    header_counts = signed(header_counts)
    if (header_counts < 0).any():
        raise _invalid("a record with less than no headers")
    offset_deltas = signed(offset_deltas)
    if (offset_deltas < 0).any() or (offset_deltas > last_deltas).any():
        raise _invalid("a record lies outside its batch's offsets")
    offsets = offset_deltas + base_offsets
    if (offsets[1:] <= offsets[:-1]).any():
        raise _invalid("the offsets do not ascend")
    timestamps = _timestamps(base_timestamps, signed(timestamp_deltas), append_times)
    return Fields(
        offsets,
        timestamps,
        append_times,
        key_starts,
        key_ends,
        key_is_null,
        value_starts,
        value_ends,
        value_is_null,
        header_counts,
        header_starts,
        ends,
    )


def keys_and_values(buffer: memoryview, fields: Fields) -> tuple[pa.Array, pa.Array]:
    """Both columns, copied out of `buffer`."""
    rows = len(fields.offsets)
    first, behind = int(fields.key_starts[0]), int(fields.value_ends[-1])
    edges = np.empty(4 * rows + 1, dtype=np.int32)
    for index, positions in enumerate((fields.key_starts, fields.key_ends, fields.value_starts, fields.value_ends)):
        np.subtract(positions, first, out=edges[index:-1:4], casting="unsafe")
    edges[-1] = behind - first
    parts = pa.Array.from_buffers(
        pa.binary(), 4 * rows, [None, pa.py_buffer(edges), pa.py_buffer(buffer[first:behind])]
    )
    wanted = np.arange(0, 4 * rows, 4, dtype=np.int32)
    return _taken(parts, wanted, fields.key_is_null), _taken(parts, wanted + np.int32(2), fields.value_is_null)


def timestamp_column(timestamps_ms: Numbers, type_: pa.DataType) -> pa.Array:
    """Microseconds, as Spark has them. What does not fit (the year 294,247 and later) is null."""
    if not timestamps_ms.size or (timestamps_ms.max() <= _LARGEST_MS and timestamps_ms.min() >= -_LARGEST_MS):
        return numbers_column(timestamps_ms * 1000, type_)
    too_far = (timestamps_ms > _LARGEST_MS) | (timestamps_ms < -_LARGEST_MS)
    return numbers_column(np.where(too_far, 0, timestamps_ms) * 1000, type_, too_far)


def _sizes(lengths: Numbers) -> Numbers:
    """Of keys or values: a negative length is null, and takes no bytes."""
    return (lengths >> 1) * (1 - (lengths & 1))


def _timestamps(base: Numbers, deltas: Numbers, append_times: Numbers) -> Numbers:
    if append_times.any():
        deltas = np.where(append_times, 0, deltas)
    timestamps: Numbers = base + deltas
    # A sum has overflowed if it has another sign than both its parts.
    if (((base ^ timestamps) & (deltas ^ timestamps)) < 0).any():
        raise InvalidBatch(ErrorCode.INVALID_TIMESTAMP, "a timestamp does not fit 64 bits")
    return timestamps


def _taken(parts: pa.Array, wanted: NDArray[np.int32], is_null: Flags) -> pa.Array:
    if not is_null.any():
        return parts.take(numbers_column(wanted, pa.int32()))
    if is_null.all():
        return pa.nulls(len(wanted), pa.binary())
    return parts.take(numbers_column(wanted, pa.int32(), is_null))


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
