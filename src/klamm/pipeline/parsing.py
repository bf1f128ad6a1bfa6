"""Records of a source, parsed and judged: each gets the columns of its schema, or a reason why not.

A record that is refused keeps its bytes exactly as they came. The reason is in words: it is not JSON, or no JSON
object, it does not fit the schema (and which field does not), it has no value, or the name of the check that it
fails.

Spark reads JSON with something behind it as the JSON: of two documents in a record the second would be lost. So a value
is read as a part of a document of ours, in which another part comes after it. A check that cannot be computed, such as
`1 / quantity > 0` for none, does not hold; Spark's ANSI mode, which would end the query, is off for checks. Whole
numbers that grow too large wrap around there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klamm.pipeline.blaming import blamed
from klamm.pipeline.causes import paragraph
from klamm.pipeline.declaration import Source
from klamm.pipeline.problems import BadPipeline

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

NO_VALUE = "has no value (a tombstone)"
NOT_UTF8 = "is not UTF-8"
NOT_JSON = "is not JSON"
NO_OBJECT = "is no JSON object"
DOES_NOT_FIT = "does not fit the schema"
ORIGIN = "source"
VALUE, PARSED, CORRUPT, UNREAD, REASON = "__value", "__parsed", "__corrupt", "__unread", "__reason"
READ, AFTER, HAS_MORE = "__read", "__after", "__has_more"
STRICT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
ANSI = "spark.sql.ansi.enabled"
ORIGIN_COLUMNS = ("topic", "partition", "offset", "timestamp", "key")


def schema_of(source: Source) -> "StructType":
    from pyspark.sql.types import StructType

    assert source.json is not None
    try:
        schema = StructType.fromDDL(source.json) if isinstance(source.json, str) else source.json
    except Exception as problem:
        raise BadPipeline(
            f"source {source.name}: `json` is no schema that Spark understands: {paragraph(problem)} "
            'Write it as in json="id string, total decimal(12,2), lines array<struct<sku: string, count: int>>".'
        ) from problem
    if not isinstance(schema, StructType) or not schema.fields:
        raise BadPipeline(f"source {source.name}: `json` is a StructType, or text as in a CREATE TABLE.")
    if ORIGIN in schema.names:
        raise BadPipeline(
            f"source {source.name}: a column `{ORIGIN}` of the schema is in the way of the struct of that name, which "
            "says where a record came from. Rename it in the records, or read it without `json`."
        )
    return schema


def judged(records: "DataFrame", source: Source) -> "DataFrame":
    """The schema's columns, the struct `source`, and why it is refused: null for a good one. The original value stays
    only with those that are refused, so that what is kept in memory is not kept twice."""
    import pyspark.sql.functions as f

    schema = schema_of(source)
    read = f.from_json(_wrapped(f.col("value")), _wrapping(schema), STRICT)
    # The detour through an array of one: Spark would else copy from_json into every condition on its columns, and parse
    # a record ten times over.
    parsed = records.select(
        f.struct(*ORIGIN_COLUMNS).alias(ORIGIN),
        f.col("value").alias(VALUE),
        f.inline(f.array(f.struct(read.alias(PARSED)))),
    )
    is_cut_off = f.col(f"{PARSED}.{AFTER}").isNull() & f.col(f"{PARSED}.{CORRUPT}").isNull()
    columns = parsed.select(
        ORIGIN,
        VALUE,
        f.col(f"{PARSED}.{CORRUPT}").isNotNull().alias(CORRUPT),
        f.col(f"{PARSED}.{READ}").isNull().alias(UNREAD),
        is_cut_off.alias(HAS_MORE),
        f"{PARSED}.{READ}.*",
    )
    with _without_ansi(records.sparkSession):
        return _with_reason(columns, schema, source)


def _with_reason(columns: "DataFrame", schema: "StructType", source: Source) -> "DataFrame":
    import pyspark.sql.functions as f

    reason = (
        f.when(f.col(VALUE).isNull(), f.lit(NO_VALUE))
        # Spark's JSON reader would put replacement characters for what is no text, and take the record.
        .when(~f.is_valid_utf8(f.col(VALUE).cast("string")), f.lit(NOT_UTF8))
        .when(f.col(HAS_MORE), f.lit(NOT_JSON))
        .when(f.col(UNREAD) | f.col(CORRUPT), _what_is_wrong(schema))
        .otherwise(f.coalesce(_missing(schema), _failed_check(columns, source)))
    )
    return columns.withColumn(REASON, reason).select(
        *(f.col(f"`{name}`") for name in schema.names),
        ORIGIN,
        f.when(f.col(REASON).isNotNull(), f.col(VALUE)).alias(VALUE),
        REASON,
    )


def good(records: "DataFrame") -> "DataFrame":
    import pyspark.sql.functions as f

    return records.where(f.col(REASON).isNull()).drop(VALUE, REASON)


def refused(records: "DataFrame") -> "DataFrame":
    """As the table of quarantine has it. A time that Spark cannot hold is none, and the table's key has to have one: it
    becomes Kafka's own word for none, -1."""
    import pyspark.sql.functions as f

    origin = [f.col(f"{ORIGIN}.{name}") for name in ORIGIN_COLUMNS if name != "timestamp"]
    at = f.coalesce(f.col(f"{ORIGIN}.timestamp"), f.timestamp_millis(f.lit(-1)))
    return records.where(f.col(REASON).isNotNull()).select(
        *origin[:3], at.alias("timestamp"), *origin[3:], f.col(VALUE).alias("value"), f.col(REASON).alias("reason")
    )


def as_messages(quarantined: "DataFrame") -> "DataFrame":
    """As the topic of quarantine has it: key and value as they came, why and from where in headers."""
    import pyspark.sql.functions as f

    said = {"reason": f.col("reason"), **{f"origin.{name}": f.col(name) for name in ORIGIN_COLUMNS[:3]}}
    headers = [
        f.struct(f.lit(key).alias("key"), f.encode(value.cast("string"), "UTF-8").alias("value"))
        for key, value in said.items()
    ]
    return quarantined.select("key", "value", f.array(*headers).alias("headers"))


@contextmanager
def _without_ansi(spark: "SparkSession") -> Iterator[None]:
    """Expressions remember how they were to treat errors when the frame was made."""
    before = spark.conf.get(ANSI)
    assert before is not None
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(ANSI, before)


def _wrapped(value: "Column") -> "Column":
    """Whoever gets to the second member has read the value to its end."""
    import pyspark.sql.functions as f

    return f.concat(f.lit(f'{{"{READ}":'), value.cast("string"), f.lit(f',"{AFTER}":0}}'))


def _wrapping(schema: "StructType") -> "StructType":
    from pyspark.sql.types import StructType

    return StructType().add(READ, schema).add(AFTER, "integer").add(CORRUPT, "string")


def _what_is_wrong(schema: "StructType") -> "Column":
    """Of a record that Spark could not read whole."""
    import pyspark.sql.functions as f

    text = f.col(VALUE).cast("string")
    which = blamed(text, schema)
    unfit = (
        f.when(which != "", f.concat(f.lit(f"{DOES_NOT_FIT}: "), which))
        .when(~text.rlike(r"^\s*\{"), f.lit(NO_OBJECT))
        .otherwise(f.lit(DOES_NOT_FIT))
    )
    return f.when(f.try_parse_json(_wrapped(f.col(VALUE))).isNull(), f.lit(NOT_JSON)).otherwise(unfit)


def _missing(schema: "StructType") -> "Column":
    """Of columns that are declared `not null`; from_json itself takes no notice of that."""
    import pyspark.sql.functions as f

    problem = f.lit(None).cast("string")
    for field in reversed([field for field in schema.fields if not field.nullable]):
        said = f.lit(f"{DOES_NOT_FIT}: {field.name} is missing")
        problem = f.when(f.col(f"`{field.name}`").isNull(), said).otherwise(problem)
    return problem


def _failed_check(columns: "DataFrame", source: Source) -> "Column":
    """The name of the first that does not hold."""
    import pyspark.sql.functions as f

    problem = f.lit(None).cast("string")
    for name, condition in reversed(list(source.checks.items())):
        try:
            columns.where(condition)
        except Exception as refusal:
            raise BadPipeline(f"source {source.name}, check {name!r}: {paragraph(refusal)}") from refusal
        problem = f.when(f.coalesce(f.expr(condition), f.lit(False)), problem).otherwise(f.lit(name))
    return problem
