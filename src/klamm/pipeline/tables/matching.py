"""Keys compared: which of these rows have a key that is among those."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROW = "__klamm_row"


def kept_of_each_key(keys: pa.Table, key: Sequence[str], order: str, which: str) -> pa.Table:
    """The columns `key` and `order`, one row a key: the first (`which` is min) or the last (max)."""
    kept = keys.group_by(list(key), use_threads=False).aggregate([(order, which)])
    return kept.rename_columns([order if name == f"{order}_{which}" else name for name in kept.column_names])


def is_among(rows: pa.Table, wanted: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    """True for each row whose key is one of the wanted ones. No key holds a null.

    Column by column first, which is quick and leaves few; only of these the whole keys are compared.
    """
    maybe = _in_column(rows, wanted, key[0])
    for name in key[1:]:
        maybe = pc.and_(maybe, _in_column(rows, wanted, name))
    if len(key) == 1 or not pc.any(maybe).as_py():
        return maybe
    numbered = rows.select(list(key)).append_column(ROW, pa.array(np.arange(rows.num_rows)))
    candidates = numbered.filter(maybe)
    matched = candidates.join(wanted.select(list(key)), keys=list(key), join_type="left semi", use_threads=False)
    return pc.is_in(numbered.column(ROW), value_set=matched.column(ROW))


def _in_column(rows: pa.Table, wanted: pa.Table, name: str) -> pa.ChunkedArray:
    column = rows.column(name)
    return pc.is_in(column, value_set=wanted.column(name).cast(column.type))
