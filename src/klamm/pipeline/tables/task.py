"""What one task of a batch does, with pyarrow alone: drop the doubles, look up keys, write files, report.

Rows arrive with two columns of ours: their order in the data frame, and the bucket of their key. A task has one bucket,
and nobody else writes to it in this batch. It reads the keys of the files that may hold some of its own, skipping row
groups whose range is elsewhere, and then:

- append: the rows are written as they come;
- ignore: rows whose key is found are dropped, the others are written;
- update: files in which a key is found are written anew without those rows, and the new rows after them.

Files of which there are too many are merged on the way. A table that is `dealt` anew gets its own rows back, by bucket.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from klamm.pipeline.tables.matching import is_among, kept_of_each_key
from klamm.pipeline.tables.places import Held, Place, belongs_into, may_hold_keys_of, to_merge
from klamm.pipeline.tables.spill import Gathered
from klamm.pipeline.tables.work import Report, Work
from klamm.pipeline.tables.writing import Files

ORDER, BUCKET = "__klamm_order", "__klamm_bucket"
REPORT = pa.schema([("report", pa.string())])


def append(work: Work, batches: Iterable[pa.RecordBatch], merged: list[Held]) -> Iterator[pa.RecordBatch]:
    """`merged`: files of the table that this task makes one of, if it has rows at all."""

    def write(files: Files) -> Report:
        report = Report()
        for batch in batches:
            files.write(fitted(pa.Table.from_batches([batch]), work.schema))
            report.rows_added += batch.num_rows
        if report.rows_added:
            _make_one_of(merged, work, files, report)
        return report

    yield _said(_written(work, None, write))


def merge_in(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of one bucket into a table with a key."""
    gathered = Gathered(batches)
    if gathered.num_rows == 0:
        return
    place = Place(work.key_digest, _only(gathered.column(BUCKET)), work.buckets)
    keys = _keys_of(gathered, work)
    nulls = _rows_with_null(keys, work.key)
    if nulls:
        yield _said(Report(null_keys=nulls))
    else:
        how = {"ignore": _ignore, "update": _update, "deal": _deal}[work.mode]
        yield _said(_written(work, place, lambda files: how(work, gathered, keys, place, files)))


def _ignore(work: Work, gathered: Gathered, keys: pa.Table, place: Place, files: Files) -> Report:
    wanted = kept_of_each_key(keys, work.key, ORDER, "min")
    for file in work.files:
        if wanted.num_rows and may_hold_keys_of(file, place):
            found = _keys_found(file, work, wanted)
            if found.num_rows:
                wanted = wanted.filter(pc.invert(is_among(wanted, found, work.key)))
    report = Report(rows_added=wanted.num_rows, rows_left_out=gathered.num_rows - wanted.num_rows)
    if report.rows_added:
        _write_those(gathered, wanted.column(ORDER), work, files)
        mine = [file for file in work.files if belongs_into(file, place)]
        _make_one_of(to_merge(mine) if work.may_merge else [], work, files, report)
    return report


def _update(work: Work, gathered: Gathered, keys: pa.Table, place: Place, files: Files) -> Report:
    """Every file was dealt into buckets before (see `DeltaSink`), so those of this bucket are this task's alone."""
    wanted = kept_of_each_key(keys, work.key, ORDER, "max")
    mine = [file for file in work.files if belongs_into(file, place)]
    merged = {file.path for file in to_merge(mine)}
    report = Report()
    new = wanted
    for file in mine:
        found = _keys_found(file, work, wanted)
        if found.num_rows or file.path in merged:
            for rows in _rows_of(file, work):
                files.write(rows.filter(pc.invert(is_among(rows, found, work.key))) if found.num_rows else rows)
            report.removed.append(file.path)
            new = new.filter(pc.invert(is_among(new, found, work.key))) if found.num_rows else new
    _write_those(gathered, wanted.column(ORDER), work, files)
    report.rows_added = new.num_rows
    report.rows_replaced = wanted.num_rows - new.num_rows
    report.rows_left_out = gathered.num_rows - wanted.num_rows
    return report


def _deal(work: Work, gathered: Gathered, keys: pa.Table, place: Place, files: Files) -> Report:
    """The table's own rows, into the bucket where they belong."""
    _write_those(gathered, keys.column(ORDER), work, files)
    return Report()


def _written(work: Work, place: Place | None, write: Callable[[Files], Report]) -> Report:
    """All of the task's files, or none."""
    files = Files(work.directory, work.stem, work.schema, place)
    try:
        report = write(files)
        report.added = files.close()
        return report
    except BaseException:
        files.discard()
        raise


def _keys_found(file: Held, work: Work, wanted: pa.Table) -> pa.Table:
    """The keys in the file that are among those wanted."""
    within: Any = None
    for name in work.key:
        ends = pc.min_max(wanted.column(name)) if _has_ends(wanted.schema.field(name).type) else None
        if ends is not None:
            one = (pc.field(name) >= ends["min"]) & (pc.field(name) <= ends["max"])
            within = one if within is None else within & one
    source = _dataset(file, work)
    found = source.to_table(columns=list(work.key), filter=within, use_threads=False)
    return found.filter(is_among(found, wanted, work.key))


def _rows_of(file: Held, work: Work) -> Iterator[pa.Table]:
    for batch in _dataset(file, work).to_batches(use_threads=False, batch_readahead=2, fragment_readahead=1):
        yield pa.Table.from_batches([batch])


def _dataset(file: Held, work: Work) -> Any:
    """With the table's schema: columns that came later are null in older files."""
    return ds.dataset([f"{work.table}/{file.path}"], schema=work.schema, format="parquet")


def _make_one_of(merged: list[Held], work: Work, files: Files, report: Report) -> None:
    """In a file of its own: to whoever follows the table, old rows in a new place are not news."""
    if len(merged) < 2:
        return
    files.begin_old_rows()
    for file in merged:
        for rows in _rows_of(file, work):
            files.write(rows)
        report.removed.append(file.path)


def _keys_of(gathered: Gathered, work: Work) -> pa.Table:
    schema = pa.schema([*(work.schema.field(name) for name in work.key), pa.field(ORDER, pa.int64())])
    return gathered.select(schema.names).cast(schema)


def _write_those(gathered: Gathered, orders: pa.ChunkedArray, work: Work, files: Files) -> None:
    all_of_them = len(orders) == gathered.num_rows
    for batch in gathered.batches():
        rows = pa.Table.from_batches([batch])
        if not all_of_them:
            rows = rows.filter(pc.is_in(rows.column(ORDER), value_set=orders))
        files.write(fitted(rows, work.schema))


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Without our columns, and in exactly the table's types: a time zone, or the width of an offset, may differ."""
    return rows.select(schema.names).cast(schema)


def _rows_with_null(keys: pa.Table, key: tuple[str, ...]) -> int:
    if not any(keys.column(name).null_count for name in key):
        return 0
    missing = pc.is_null(keys.column(key[0]))
    for name in key[1:]:
        missing = pc.or_(missing, pc.is_null(keys.column(name)))
    return int(pc.sum(missing).as_py())


def _only(bucket: pa.ChunkedArray) -> int:
    ends = pc.min_max(bucket).as_py()
    assert ends["min"] == ends["max"], f"one task was given the buckets {ends}"
    return int(ends["min"])


def _has_ends(of: pa.DataType) -> bool:
    return not (pa.types.is_boolean(of) or pa.types.is_decimal(of))


def _said(report: Report) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([report.to_json()], pa.string())], schema=REPORT)
