"""The columns a topic takes, and a record batch of them as what a producer wants: Python's lists, made in bulk.

`value` has to be there; `key`, `partition`, `headers` and `topic` may be. Keys and values are strings or binary. The
option `topic` wins over the column; without either nobody knows where the rows should go. Other columns are left
alone. All this is as Spark's own connector has it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from klamm.pipeline.sink.problems import WrongColumns

Header: TypeAlias = tuple[str, str | bytes | None]

ANY_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Records:
    """One record batch, column by column; what is the same for all of them repeats without end, `values` counts."""

    topics: Iterable[str]
    values: Sequence[bytes | None]
    keys: Iterable[bytes | None]
    partitions: Iterable[int]
    headers: Sequence[list[Header]] | None
    """None if there are none in the whole batch: librdkafka takes twice as long as soon as there may be some."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which of them the rows have. `topic`: the one for all rows, or None if a column says it."""

    topic: str | None
    with_key: bool
    with_partition: bool
    with_headers: bool

    def records(self, batch: pa.RecordBatch) -> Records:
        return Records(
            topics=repeat(self.topic) if self.topic is not None else _topics(batch.column("topic")),
            values=_bytes(batch.column("value")),
            keys=_bytes(batch.column("key")) if self.with_key else repeat(None),
            partitions=_partitions(batch.column("partition")) if self.with_partition else repeat(ANY_PARTITION),
            headers=_headers(batch.column("headers")) if self.with_headers else None,
        )


def columns_of(schema: StructType, topic: str | None) -> Columns:
    """What the rows have, or WrongColumns."""
    if topic is None and not _has(schema, "topic", "string"):
        raise WrongColumns(
            "Nothing says which topic the rows should go to: give the option topic, or a column named topic (a string)."
        )
    if not _has(schema, "value", "string", "binary"):
        raise WrongColumns(
            f"There is no column named value, which is what a record holds; there are: {', '.join(schema.names)}. Make "
            "one, a string or binary, with to_json for instance."
        )
    return Columns(
        topic=topic,
        with_key=_has(schema, "key", "string", "binary"),
        with_partition=_has(schema, "partition", "int"),
        with_headers=_has(schema, "headers", "array<struct<key:string,value:binary>>"),
    )


def _has(schema: StructType, name: str, *wanted: str) -> bool:
    found = next((field for field in schema.fields if field.name == name), None)
    if found is not None and _plain(found.dataType) not in wanted:
        raise WrongColumns(
            f"The column {name} is of type {found.dataType.simpleString()}; it has to be {' or '.join(wanted)}. Cast "
            "it, or give it another name if it is not meant for the record."
        )
    return found is not None


def _plain(kind: DataType) -> str:
    """Its name without what does not matter here: whether nulls may be in it."""
    if isinstance(kind, ArrayType):
        return f"array<{_plain(kind.elementType)}>"
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{field.name}:{_plain(field.dataType)}' for field in kind.fields)}>"
    return kind.simpleString() if isinstance(kind, StringType | BinaryType | IntegerType) else f"other {kind}"


def _bytes(column: pa.Array) -> list[bytes | None]:
    """Through numpy, which makes the objects in one loop in C; a string's bytes are its UTF-8."""
    is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    as_bytes = column.cast(pa.large_binary() if is_large else pa.binary())
    made: list[bytes | None] = as_bytes.to_numpy(zero_copy_only=False).tolist()
    return made


def _topics(column: pa.Array) -> list[str]:
    if column.null_count:
        raise WrongColumns(
            "The column topic is null in some row, so nobody knows where that row should go. Give the option topic for "
            "all rows, or drop the rows without one."
        )
    made: list[str] = column.to_numpy(zero_copy_only=False).tolist()
    return made


def _partitions(column: pa.Array) -> list[int]:
    """A null leaves the choice to the producer. librdkafka would take -1 for the same, Java refuses it."""
    filled: list[int] = column.fill_null(ANY_PARTITION).to_pylist()
    if any(partition < 0 for partition in column.drop_null().to_pylist()):
        raise WrongColumns(
            f"The column partition holds {min(filled)}, and partitions are counted from 0. Where the key should "
            "decide, leave it null."
        )
    return filled


def _headers(column: pa.Array) -> list[list[Header]]:
    pairs = column.values
    names = pairs.field("key")
    if pairs.null_count or names.null_count:
        raise WrongColumns(
            "A header has no name: in the column headers every element needs a key; only its value may be null."
        )
    made: list[Header] = list(
        zip(names.to_numpy(zero_copy_only=False).tolist(), _bytes(pairs.field("value")), strict=True)
    )
    ends = column.offsets.to_pylist()
    return [made[start:end] for start, end in pairwise(ends)]
