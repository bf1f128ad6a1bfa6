"""How a table is altered so that rows fit it: a few lines of Python, to be shown to whoever has to do it.

They are shown and not run: whether old rows are worth keeping, and a column that went was renamed or is not wanted any
more, only a person knows. A Delta table is written anew in one commit, which keeps what it knows about batches. The
files of a Parquet table are first written beside those that are there, so that a value that cannot be cast changes
nothing; then its note of the columns goes, and the next batch takes them from the files.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

ARROW: dict[type[DataType], str] = {
    StringType: "pa.string()",
    BinaryType: "pa.binary()",
    BooleanType: "pa.bool_()",
    ByteType: "pa.int8()",
    ShortType: "pa.int16()",
    IntegerType: "pa.int32()",
    LongType: "pa.int64()",
    FloatType: "pa.float32()",
    DoubleType: "pa.float64()",
    DateType: "pa.date32()",
    TimestampType: 'pa.timestamp("us", "UTC")',
    TimestampNTZType: 'pa.timestamp("us")',
}

DELTA = """\
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

table = DeltaTable({path})
rows = table.to_pyarrow_table()
{changes}
write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite")
"""

PARQUET = """\
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq

table = Path({path})
files = list(table.glob("[!._]*.parquet"))
for file in files:
    rows = pq.ParquetFile(file).read()
    {changes}
    pq.write_table(rows, file.with_name("_" + file.name))
for file in files:
    file.with_name("_" + file.name).replace(file)
(table / "_klamm" / "schema.json").unlink()
"""


@dataclass(frozen=True, slots=True)
class _Changes:
    renamed: dict[str, str]
    cast: dict[str, tuple[DataType, DataType]]
    """From and to."""
    dropped: list[str]
    added: list[StructField]


def lines_for(table: StructType, rows: StructType, path: str, is_delta: bool) -> str:
    """Python that makes the table take such rows; nothing if a column would have to change that cannot be cast."""
    changes = _changes(table, rows, is_delta)
    if any(_arrow(field.dataType) is None for field in changes.added):
        return ""
    if not all(_can_be_cast(*types) for types in changes.cast.values()):
        return ""
    template, indent = (DELTA, "") if is_delta else (PARQUET, "    ")
    return template.format(path=_quoted(path), changes=f"\n{indent}".join(_steps(changes)))


def _changes(table: StructType, rows: StructType, is_delta: bool) -> _Changes:
    gone = [field for field in table if field.name not in rows.names]
    new = [field for field in rows if field.name not in table.names]
    renamed = _renamed(gone, new)
    old_types = {renamed.get(field.name, field.name): field.dataType for field in table}
    return _Changes(
        renamed,
        {
            field.name: (old_types[field.name], field.dataType)
            for field in rows
            if old_types.get(field.name, field.dataType) != field.dataType
        },
        [field.name for field in gone if field.name not in renamed],
        # A Delta table takes new columns by itself.
        [] if is_delta else [field for field in new if field.name not in renamed.values()],
    )


def _renamed(gone: Sequence[StructField], new: Sequence[StructField]) -> dict[str, str]:
    """Those that differ in capitals, or one that went where one of the same type came."""
    by_letters = {field.name.lower(): field.name for field in new}
    renamed = {field.name: by_letters[field.name.lower()] for field in gone if field.name.lower() in by_letters}
    if not renamed and len(gone) == len(new) == 1 and gone[0].dataType == new[0].dataType:
        return {gone[0].name: new[0].name}
    return renamed


def _steps(changes: _Changes) -> list[str]:
    steps = []
    for old, new in changes.renamed.items():
        doubt = "" if old.lower() == new.lower() else f"  # or, if it is another: rows.drop_columns([{_quoted(old)}])"
        steps.append(f"rows = rows.rename_columns({{{_quoted(old)}: {_quoted(new)}}}){doubt}")
    for name in changes.dropped:
        steps.append(f"rows = rows.drop_columns([{_quoted(name)}])")
    for column, (_, to) in changes.cast.items():
        name = _quoted(column)
        cast = "".join(f".cast({_arrow(each)})" for each in _by_way_of(to))
        steps.append(f"rows = rows.set_column(rows.column_names.index({name}), {name}, rows[{name}]{cast})")
    for field in changes.added:
        nulls = f"pa.nulls(len(rows), {_arrow(field.dataType)})"
        steps.append(f"rows = rows.append_column({_quoted(field.name)}, {nulls})")
    return steps


def _by_way_of(to: DataType) -> list[DataType]:
    """Arrow casts whole numbers only to decimals that have room for the largest; those are then made narrower."""
    return [DecimalType(38, to.scale), to] if isinstance(to, DecimalType) else [to]


def _can_be_cast(old: DataType, new: DataType) -> bool:
    """Whether Arrow knows how; whether each value can be is seen when it is done."""
    if _arrow(old) is None or _arrow(new) is None:
        return False
    values: Any = pa.array([], to_arrow_type(old, timezone="UTC"))
    try:
        for each in _by_way_of(new):
            values = values.cast(to_arrow_type(each, timezone="UTC"))
    except pa.ArrowException:
        return False
    return True


def _arrow(found: DataType) -> str | None:
    """Not of structs, lists and maps: there is no telling which of their parts is which."""
    if isinstance(found, DecimalType):
        return f"pa.decimal128({found.precision}, {found.scale})"
    return ARROW.get(type(found))


def _quoted(text: str) -> str:
    """As a Python string; JSON's are such."""
    return json.dumps(text, ensure_ascii=False)
