"""Which fields of a record do not fit the schema.

Those that have a value in the text and none when parsed, as they are called in SQL: `total is no decimal(12,2)`,
`line_items.quantity is no int`. Spark only says that something is wrong with the record.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

MOST_FIELDS, DEEPEST, LONGEST = 40, 3, 200
"""So many fields of an object are looked at, so many levels down; so much is said of a type."""
STRICT = {"allowSingleQuotes": "false"}


def blamed(text: "Column", schema: "StructType") -> "Column":
    """In words, parted by commas; empty if they lie too deep. What was parsed are columns of their names."""
    import pyspark.sql.functions as f

    found = [
        _of(field.name, f.get_json_object(text, f"$['{field.name}']"), f.col(f"`{field.name}`"), field.dataType, 1)
        for field in schema.fields[:MOST_FIELDS]
    ]
    return f.concat_ws(", ", f.array_distinct(f.concat(*found)))


def _of(path: str, text: "Column", parsed: "Column", kind: "DataType", level: int) -> "Column":
    """An array of what there is to say about one value: the text that it is, and what became of it."""
    import pyspark.sql.functions as f

    nothing = f.array().cast("array<string>")
    itself = f.array(f.lit(f"{path} is no {kind.simpleString()}"[:LONGEST]))
    within = _within(path, text, parsed, kind, level + 1) if level < DEEPEST else None
    is_there = text.isNotNull()
    unfit = f.when(is_there & parsed.isNull(), itself)
    return (unfit if within is None else unfit.when(is_there, f.coalesce(within, nothing))).otherwise(nothing)


def _within(path: str, text: "Column", parsed: "Column", kind: "DataType", level: int) -> "Column | None":
    """The same about its parts, each of which is read as the text that it is; None for what has no parts."""
    import pyspark.sql.functions as f
    from pyspark.sql.types import ArrayType, StringType, StructField, StructType

    if isinstance(kind, ArrayType):
        texts = f.from_json(text, ArrayType(StringType()), STRICT)
        return f.flatten(f.zip_with(texts, parsed, lambda one, of_it: _of(path, one, of_it, kind.elementType, level)))
    if isinstance(kind, StructType):
        fields = kind.fields[:MOST_FIELDS]
        texts = f.from_json(text, StructType([StructField(field.name, StringType()) for field in fields]), STRICT)
        # By a lambda, or Spark would read the text once for every field.
        found = f.transform(
            f.array(texts),
            lambda read: f.concat(
                *(
                    _of(f"{path}.{each.name}", read[each.name], parsed[each.name], each.dataType, level)
                    for each in fields
                )
            ),
        )
        return found[0]
    return None
