"""Whether rows fit a table. A new table takes the schema of its first rows, every column nullable.

Later rows need every column of the table, of the same type. Columns that are new are added to a Delta table, and older
rows hold null there; a Parquet table is a plain directory whose readers look at one file to learn the columns, so there
they do not fit. A column that is missing does not fit either: it is most often one that was renamed, and nulls would
hide that.
"""

from collections.abc import Sequence
from textwrap import indent

from pyspark.sql.types import (
    ArrayType,
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
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from klamm.pipeline.problems import PipelineError
from klamm.pipeline.tables.altering import lines_for

WHOLE = (ByteType, ShortType, IntegerType, LongType)
KEYS = (*WHOLE, StringType, BinaryType, BooleanType, DateType, DecimalType, TimestampType, TimestampNTZType)
PLAIN = (*KEYS, FloatType, DoubleType)
RESERVED = "__klamm_"
CHOICES = (
    "Change the function that makes the rows, write to another --data directory, or begin again without the rows that "
    "are there: --reset --drop-tables."
)
ALTER = "To keep them, alter the table; in Python, while nothing runs:"


class DoesNotFit(PipelineError):  # noqa: N818
    """The rows are not the table's: one paragraph that says in which columns, and what to do."""


def schema_of_table(rows: StructType, table: str) -> StructType:
    """What a table of such rows looks like: the same columns, nullable, without notes of Spark's own."""
    twice = sorted({a.name for a in rows for b in rows if a is not b and a.name.lower() == b.name.lower()})
    if twice:
        raise DoesNotFit(f"The rows for the table {table} have the columns {_listed(twice)}, whose names are the same.")
    reserved = [field.name for field in rows if field.name.startswith(RESERVED)]
    if reserved:
        raise DoesNotFit(f"The rows for the table {table} have the column {reserved[0]}; {RESERVED}… is not free.")
    return StructType([StructField(field.name, _nullable(field.dataType, table, field.name)) for field in rows])


def check_key(key: Sequence[str], schema: StructType, table: str) -> None:
    """A key is made of columns that can be compared exactly."""
    for name in key:
        if name not in schema.names:
            columns = ", ".join(schema.names)
            raise DoesNotFit(
                f"The key of the table {table} is {name}, which its rows do not have: they have {columns}."
            )
        found = schema[name].dataType
        if not isinstance(found, KEYS):
            raise DoesNotFit(
                f"The key of the table {table} is {name} of type {found.simpleString()}, which cannot be compared "
                "exactly. Take a column of text, whole numbers, decimals, dates, times or bytes."
            )


def added_columns(table: StructType, rows: StructType, name: str, may_grow: bool) -> list[StructField]:
    """The columns that the table does not have yet. Both schemas come from `schema_of_table`."""
    there = {field.name: field.dataType for field in table}
    came = {field.name: field.dataType for field in rows}
    new = [field for field in rows if field.name not in there]
    known = {column.lower() for column in there}
    strange = [field for field in new if not may_grow or field.name.lower() in known]
    wrong = [
        f"{column} is {there[column].simpleString()} in the table and {came[column].simpleString()} in the rows"
        for column in there
        if column in came and came[column] != there[column]
    ]
    wrong += [f"{column} is missing in the rows" for column in there if column not in came]
    wrong += [f"{field.name} ({field.dataType.simpleString()}) is not in the table" for field in strange]
    if wrong:
        lines = lines_for(table, rows, name, is_delta=may_grow)
        how = f" {ALTER}\n\n{indent(lines, '    ')}" if lines else ""
        raise DoesNotFit(f"The rows do not fit the table {name}: {'; '.join(wrong)}. {CHOICES}{how}")
    return new


def null_key(key: Sequence[str], rows: int, table: str) -> DoesNotFit:
    many = "1 row has" if rows == 1 else f"{rows} rows have"
    return DoesNotFit(
        f"{many} null in the key ({', '.join(key)}) of the table {table}, so nobody could say whether they are there "
        "already; nothing of the batch was written. Drop such rows, or let a check send them to quarantine."
    )


def _nullable(found: DataType, table: str, column: str) -> DataType:
    if isinstance(found, StructType):
        return StructType(
            [StructField(inner.name, _nullable(inner.dataType, table, f"{column}.{inner.name}")) for inner in found]
        )
    if isinstance(found, ArrayType):
        return ArrayType(_nullable(found.elementType, table, f"{column}[]"))
    if isinstance(found, MapType):
        key = _nullable(found.keyType, table, f"the keys of {column}")
        return MapType(key, _nullable(found.valueType, table, f"the values of {column}"))
    if isinstance(found, StringType):
        return StringType()
    if isinstance(found, PLAIN):
        return found
    raise DoesNotFit(
        f"The rows for the table {table} have {column} of type {found.simpleString()}, which tables do not hold. "
        "Cast it to a type that they do (text, numbers, dates, times, bytes, and structs, lists and maps of those)."
    )


def _listed(words: Sequence[str]) -> str:
    return " and ".join(words)
