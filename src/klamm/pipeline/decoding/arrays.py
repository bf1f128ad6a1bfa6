"""Arrow's columns over numpy's numbers, and of one value again and again.

Arrow has functions that make a column of anything, and they import pandas to see whether it is one of pandas' own. That
is a third of a worker's start, and Spark waits for workers to start.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from klamm.pipeline.decoding.varints import Flags


def numbers_column(numbers: NDArray[Any], type_: pa.DataType, is_null: Flags | None = None) -> pa.Array:
    """Over the same memory; `numbers` are of the width that `type_` has."""
    assert numbers.dtype.itemsize * 8 == type_.bit_width
    valid = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(type_, len(numbers), [valid, pa.py_buffer(np.ascontiguousarray(numbers))])


def flags_column(flags: Flags) -> pa.Array:
    packed = np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(packed)])


def repeated_text(text: str, rows: int) -> pa.Array:
    encoded = text.encode()
    edges = np.arange(rows + 1, dtype=np.int32) * np.int32(len(encoded))
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(edges), pa.py_buffer(encoded * rows)])
