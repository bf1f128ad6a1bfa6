"""The Parquet files that a task writes, with the statistics that Delta keeps of them.

A task that fails removes what it wrote. One that is killed leaves files that no table knows of, to be swept up later.
"""

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from klamm.pipeline.tables.places import LARGE_BYTES, Place, new_name
from klamm.pipeline.tables.work import NewFile

ROWS_OF_A_GROUP = 131_072
LONGEST_STATISTIC = 64
"""Longer texts are no help in finding a row, and would fill the log."""


class Files:
    """Rows in, files out: a new one whenever one is large."""

    def __init__(self, directory: str, stem: str, schema: pa.Schema, place: Place | None) -> None:
        self._directory = Path(directory)
        self._stem = stem
        self._schema = schema
        self._place = place
        self._path: Path | None = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._is_change = True
        self.written: list[NewFile] = []

    def write(self, rows: pa.Table) -> None:
        """Gathers whole row groups: many small ones are slow to read."""
        if rows.num_rows == 0:
            return
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        if self._waiting_rows >= ROWS_OF_A_GROUP:
            self._flush()

    def close(self) -> list[NewFile]:
        self._flush()
        self._finish()
        return self.written

    def begin_old_rows(self) -> None:
        """What follows was in the table before; it goes to files of its own."""
        self.close()
        self._is_change = False

    def discard(self) -> None:
        """Nothing is left of it."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        names = [file.name for file in self.written] + ([self._path.name] if self._path else [])
        for name in names:
            (self._directory / name).unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        rows = pa.concat_tables(self._waiting)
        self._waiting, self._waiting_rows = [], 0
        if self._writer is None:
            self._path = self._directory / new_name(self._stem, self._place)
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        self._writer.write_table(rows, row_group_size=ROWS_OF_A_GROUP)
        assert self._path is not None
        if self._path.stat().st_size >= LARGE_BYTES:
            self._finish()

    def _finish(self) -> None:
        if self._writer is None or self._path is None:
            return
        self._writer.close()
        metadata = self._writer.writer.metadata
        seen = self._path.stat()
        stats = json.dumps(statistics(metadata, self._schema))
        self.written.append(
            NewFile(self._path.name, seen.st_size, metadata.num_rows, int(seen.st_mtime * 1000), stats, self._is_change)
        )
        self._writer, self._path = None, None


def statistics(metadata: Any, schema: pa.Schema) -> dict[str, Any]:
    """Of the plain columns: the smallest and the largest value, and how many are null."""
    smallest: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        if name not in schema.names or pa.types.is_nested(schema.field(name).type):
            continue
        found = [group.column(number).statistics for group in groups]
        if any(one is None or not one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        ranges = [one for one, group in zip(found, groups, strict=True) if one.null_count < group.num_rows]
        if ranges and all(one.has_min_max for one in ranges) and _has_range(schema.field(name).type):
            low, high = _ends(ranges)
            if low is not None and high is not None:
                smallest[name], largest[name] = low, high
    return {"numRecords": metadata.num_rows, "minValues": smallest, "maxValues": largest, "nullCount": nulls}


def _ends(ranges: list[Any]) -> tuple[Any, Any]:
    """None for what Python has no value for: Spark's years go far beyond 9999, and before the first."""
    try:
        return _as_json(min(one.min for one in ranges)), _as_json(max(one.max for one in ranges))
    except (OverflowError, ValueError):
        return None, None


def _has_range(of: pa.DataType) -> bool:
    """Not numbers with a point: Parquet leaves NaN out of their range, and to Spark it is the largest."""
    zoned = pa.types.is_timestamp(of) and of.tz is not None
    return bool(pa.types.is_integer(of) or pa.types.is_string(of) or pa.types.is_date(of) or zoned)


def _as_json(value: Any) -> Any:
    """None where it would be too long."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_STATISTIC else None
    if isinstance(value, datetime):
        # Not strftime: it leaves out the zeros of a year below 1000.
        return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    if isinstance(value, date):
        return value.isoformat()
    return value


def is_there(directory: str, file: NewFile) -> bool:
    """Whether the driver sees what an executor wrote."""
    try:
        return os.stat(os.path.join(directory, file.name)).st_size == file.size  # noqa: PTH116, PTH118
    except OSError:
        return False
