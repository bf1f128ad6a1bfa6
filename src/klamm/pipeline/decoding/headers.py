"""The column of headers: for each row a list of names and contents, and null where there are none, as in Spark's own.

A record's headers stand one after the other, each a name and a content behind their lengths. The first header of all
rows is decoded at once, then the second of those that have one.

Names are text. Bytes that are not UTF-8 are replaced as Java does it, so that no client can stop a reader.
"""

import numpy as np
import pyarrow as pa

from klamm.errors import ErrorCode
from klamm.pipeline.decoding.arrays import flags_column, numbers_column
from klamm.pipeline.decoding.columns import Fields
from klamm.pipeline.decoding.schema import HEADERS
from klamm.pipeline.decoding.varints import Bytes, Numbers, numbers_at
from klamm.records.invalid import InvalidBatch

# A name of no bytes and a null content.
_SMALLEST_BYTES = 2


def headers_column(buffer: Bytes, view: memoryview, fields: Fields) -> pa.Array:
    counts = fields.header_counts
    if (counts * _SMALLEST_BYTES > fields.ends - fields.header_starts).any():
        raise _invalid("more headers than there are bytes for")
    total = int(counts.sum())
    if total == 0:
        return pa.nulls(len(counts), HEADERS)
    edges = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=edges[1:])
    parts = _parts(buffer, fields, edges[:-1].astype(np.int64), total)
    names, contents = _names_and_contents(view, parts, int(fields.header_starts[0]), int(fields.ends[-1]))
    pairs = pa.StructArray.from_arrays([names, contents], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(
        numbers_column(edges, pa.int32()), pairs, type=HEADERS, mask=flags_column(counts == 0)
    )


class _Parts:
    """Where name and content of every header are, in the order of the rows."""

    def __init__(self, total: int) -> None:
        self.edges = np.empty((total, 4), dtype=np.int64)
        self.content_is_null = np.empty(total, dtype=np.bool_)


def _parts(buffer: Bytes, fields: Fields, places: Numbers, total: int) -> _Parts:
    parts = _Parts(total)
    rows = fields.header_counts.nonzero()[0]
    places, left = places[rows], fields.header_counts[rows]
    at, ends = fields.header_starts[rows], fields.ends[rows]
    while rows.size:
        at = _one_header_each(buffer, parts, places, at)
        places, left = places + 1, left - 1
        done = left == 0
        if not done.any():
            continue
        if (at[done] != ends[done]).any():
            raise _invalid("a record's headers do not end where it does")
        going = ~done
        rows, places, left, at, ends = rows[going], places[going], left[going], at[going], ends[going]
    return parts


def _one_header_each(buffer: Bytes, parts: _Parts, places: Numbers, at: Numbers) -> Numbers:
    name_lengths, name_starts = numbers_at(buffer, at)
    if (name_lengths & 1).any():
        raise _invalid("a header without a name")
    name_ends = name_starts + (name_lengths >> 1)
    content_lengths, content_starts = numbers_at(buffer, name_ends)
    is_null = content_lengths & 1
    content_ends: Numbers = content_starts + (content_lengths >> 1) * (1 - is_null)
    parts.edges[places] = np.stack((name_starts, name_ends, content_starts, content_ends), axis=1)
    parts.content_is_null[places] = is_null
    return content_ends


def _names_and_contents(view: memoryview, parts: _Parts, first: int, behind: int) -> tuple[pa.Array, pa.Array]:
    total = len(parts.edges)
    edges = np.empty(4 * total + 1, dtype=np.int32)
    np.subtract(parts.edges.reshape(-1), first, out=edges[:-1], casting="unsafe")
    edges[-1] = behind - first
    cut = pa.Array.from_buffers(pa.binary(), 4 * total, [None, pa.py_buffer(edges), pa.py_buffer(view[first:behind])])
    wanted = np.arange(0, 4 * total, 4, dtype=np.int32)
    contents = cut.take(numbers_column(wanted + np.int32(2), pa.int32(), parts.content_is_null))
    return _as_text(cut.take(numbers_column(wanted, pa.int32()))), contents


def _as_text(names: pa.Array) -> pa.Array:
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], type=pa.string())


def _invalid(message: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, message)
