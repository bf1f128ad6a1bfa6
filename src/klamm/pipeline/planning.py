"""Which streaming queries a pipeline becomes, found by typing its functions on streams that are empty.

What has no state and comes from one source shares that source's query: a record is read and parsed once, and each batch
of it goes through all those functions. A function with state (an aggregation, a deduplication, a join of streams,
transformWithState) has a query of its own; functions that only reshape its rows go with it. So a query has a base, a
source or a function, and everything that is computed from the base's batch.

Nothing is read here and no cluster is asked. Columns that are not there, keys that are none, and what Spark refuses to
do on a stream come to light.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from klamm.pipeline import parsing
from klamm.pipeline.causes import paragraph
from klamm.pipeline.declaration import UPDATE, Output, Pipeline, Source, Table, Topic
from klamm.pipeline.flow import Flow
from klamm.pipeline.problems import BadPipeline, PipelineError, meant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

RECORD = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
HEADERS = "headers array<struct<key: string, value: binary>>"
UPDATING, APPENDING = "update", "append"

STATELESS = {
    "CoGroup", "FlatMapCoGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapGroupsInArrow", "FlatMapGroupsInPandas",
    "MapGroups",
}  # fmt: skip
"""What Spark does batch by batch, and does not say so: each batch has groups of its own."""
OPERATORS = STATELESS | {
    "Aggregate", "AsOfJoin", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "Except", "Except All",
    "FlatMapGroupsInPandasWithState", "FlatMapGroupsWithState", "GlobalLimit", "Intersect", "Intersect All",
    "NearestByJoin", "Offset", "Sort", "Tail", "TransformWithState", "TransformWithStateInPandas",
    "TransformWithStateInPySpark", "Window",
}  # fmt: skip
"""What looks at more than one row, by the names of Spark's plans: in a batch of a stream it would not see them all."""
CHANGING = {"Aggregate"}
"""What sends a row of the same key again when it has changed."""
NODE = re.compile(r"^[\s:+\-|]*~?(?P<name>[A-Z]\w*) ?(?P<rest>.*)$")
NUMBERS = re.compile(r"#\d+L?(-T\d+ms)?|-T\d+ms")
WINDOWED = re.compile(r"precisetimestampconversion|session_window", re.I)
MESSAGE_TYPES = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
}


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    name: str
    """Of its base: a source or a function."""
    sources: tuple[Source, ...]
    outputs: tuple[Output, ...]
    quarantines: Source | None
    """The source whose bad records it puts away, if it is a source's own query."""
    operators: tuple[str, ...] = ()
    """With state, each with its columns: what must not change while there is a checkpoint."""
    mode: str = APPENDING
    computes: tuple[str, ...] = ()
    """What they compute, in Spark's words, and the windows they do it in. That must not change either: rows of other
    windows, or other sums, would mix with those that are there."""

    @property
    def is_of_source(self) -> bool:
        return any(source.name == self.name for source in self.sources)


@dataclass(frozen=True, slots=True)
class Plan:
    pipeline: Pipeline
    queries: tuple[PlannedQuery, ...]
    schemas: "dict[str, StructType]"
    """Of each output, by its label."""
    unused: tuple[str, ...]
    """Sources and steps that nothing is made from."""


def planned(spark: "SparkSession", pipeline: Pipeline) -> Plan:
    flow = pipeline.flow
    frames = {source.name: given(empty_records(spark, source), source) for source in pipeline.sources}
    bases = {source: source for source in flow.sources}
    for name in flow.order:
        _told(flow, name, frames)
        bases[name] = _base(spark, flow, name, frames, bases)
    for output in pipeline.outputs:
        _check_output(output, frames[output.function.__name__])
    queries = [_query(spark, pipeline, base, bases, frames) for base in (*flow.sources, *flow.order)]
    for output in pipeline.outputs:
        # Also where Spark will never see it as a stream: what it refuses there is wrong in a batch of one as well.
        _mode(spark, flow, output.function.__name__, frames[output.function.__name__])
    used = {name for output in pipeline.outputs for name in _upstream(flow, output.function.__name__)}
    return Plan(
        pipeline,
        tuple(query for query in queries if query is not None),
        {output.label: frames[output.function.__name__].schema for output in pipeline.outputs},
        tuple(name for name in (*flow.sources, *flow.order) if name not in used),
    )


def given(records: "DataFrame", source: Source) -> "DataFrame":
    """What functions get for a source's records."""
    return records if source.json is None else parsing.good(parsing.judged(records, source))


def empty_records(spark: "SparkSession", source: Source) -> "DataFrame":
    from pyspark.sql.types import StructType

    with_headers = source.options.get("includeHeaders", "false").lower() == "true"
    schema = StructType.fromDDL(f"{RECORD}, {HEADERS}" if with_headers else RECORD)
    assert isinstance(schema, StructType)
    return _empty(spark, schema)


def operators_of(frame: "DataFrame") -> list[Any]:
    """The nodes of its plan that keep state, or would have to."""
    found: list[Any] = []
    _walk(frame._jdf.queryExecution().analyzed(), found)
    return found


def _walk(node: Any, found: list[Any]) -> None:
    children = [node.children().apply(index) for index in range(node.children().size())]
    if node.isStreaming():
        joins_streams = node.nodeName() == "Join" and all(child.isStreaming() for child in children)
        if joins_streams or node.nodeName() in OPERATORS:
            found.append(node)
    for child in children:
        _walk(child, found)


def _empty(spark: "SparkSession", schema: "StructType") -> "DataFrame":
    import pyspark.sql.functions as f

    columns = [f.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields]
    return spark.readStream.format("rate").load().where("false").select(*columns)


def _told(flow: Flow, name: str, frames: "dict[str, DataFrame]") -> None:
    """The function's frame; what goes wrong in making it is told with the function's name."""
    try:
        flow.frame(name, frames)
    except PipelineError:
        raise
    except Exception as problem:
        raise BadPipeline(f"{flow.where(name)}: {paragraph(problem)}") from problem


def _base(spark: "SparkSession", flow: Flow, name: str, frames: "dict[str, DataFrame]", bases: dict[str, str]) -> str:
    """Its inputs' base, if they have the same and it adds no state of its own."""
    inputs = flow.inputs[name]
    alone = flow.called(name, {each: _empty(spark, frames[each].schema) for each in inputs})
    below = {bases[each] for each in inputs}
    return below.pop() if len(below) == 1 and not operators_of(alone) else name


def _query(
    spark: "SparkSession", pipeline: Pipeline, base: str, bases: dict[str, str], frames: "dict[str, DataFrame]"
) -> PlannedQuery | None:
    flow = pipeline.flow
    outputs = tuple(output for output in pipeline.outputs if bases[output.function.__name__] == base)
    sources = tuple(pipeline.source(name) for name in flow.sources_of(base))
    if base in flow.sources:
        quarantines = sources[0] if sources[0].json is not None else None
        return PlannedQuery(base, sources, outputs, quarantines) if outputs or quarantines else None
    if not outputs:
        return None
    nodes = operators_of(frames[base])
    if any(node.nodeName() in STATELESS for node in nodes):
        raise BadPipeline(
            f"{flow.where(base)} works on groups of rows, and on a stream it would get only those that a batch happens "
            "to hold. applyInPandasWithState and transformWithState keep what came before; mapInPandas takes rows as "
            "they come."
        )
    mode = _mode(spark, flow, base, frames[base])
    if mode == UPDATING and any(node.nodeName() in CHANGING for node in nodes):
        for output in outputs:
            _check_that_it_updates(output, flow, base)
    return PlannedQuery(
        base, sources, outputs, None, tuple(_described(node) for node in nodes), mode, _computed(frames[base])
    )


def _mode(spark: "SparkSession", flow: Flow, base: str, frame: "DataFrame") -> str:
    """Update, where rows come as soon as they change; append where Spark takes nothing else."""
    jvm: Any = spark._jvm
    analyzed = frame._jdf.queryExecution().analyzed()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    refusals = []
    for mode, java_mode in ((UPDATING, modes.Update()), (APPENDING, modes.Append())):
        try:
            checker.checkForStreaming(analyzed, java_mode)
            return mode
        except Exception as problem:
            refusals.append(paragraph(problem))
    raise BadPipeline(
        f"{flow.where(base)} does what Spark cannot do on a stream: {refusals[0]} "
        "It would have to see all rows, and there are always more to come; group them by a window of time, or do it in "
        "what reads the table."
    )


def _described(node: Any) -> str:
    """Its kind and the columns that come out of it: what its state looks like, as far as we can tell."""
    columns = [node.output().apply(index) for index in range(node.output().size())]
    return f"{node.nodeName()}({', '.join(f'{each.name()} {each.dataType().simpleString()}' for each in columns)})"


def _computed(frame: "DataFrame") -> tuple[str, ...]:
    """Without the numbers that Spark gives to columns, and without how long a watermark waits, which may change."""
    lines = frame._jdf.queryExecution().analyzed().treeString().splitlines()
    nodes = [(found["name"], NUMBERS.sub("", found["rest"])) for line in lines if (found := NODE.match(line))]
    return tuple(
        f"{name} {rest}".strip()
        for name, rest in nodes
        if name in OPERATORS or (name in ("Project", "Expand") and WINDOWED.search(rest))
    )


def _check_output(output: Output, frame: "DataFrame") -> None:
    from klamm.pipeline.tables.fitting import DoesNotFit, check_key, schema_of_table

    if isinstance(output, Topic):
        _check_message(output, frame)
        return
    for column in output.key:
        if column not in frame.columns:
            raise BadPipeline(
                f"{output.label}: the key names a column `{column}`, which `{output.function.__name__}` does not "
                f"give.{meant(column, frame.columns)}"
            )
    try:
        check_key(output.key, schema_of_table(frame.schema, output.name), output.name)
    except DoesNotFit as problem:
        raise BadPipeline(f"{output.label}: {problem}") from problem


def _check_message(output: Topic, frame: "DataFrame") -> None:
    if "value" not in frame.columns:
        raise BadPipeline(
            f"{output.label}: `{output.function.__name__}` gives {', '.join(frame.columns)}, and no column `value`, "
            'which is what a record says. Make one, as in select(f.col("id").alias("key"), '
            'f.to_json(f.struct("*")).alias("value")).'
        )
    for field in frame.schema.fields:
        kinds = MESSAGE_TYPES.get(field.name, ())
        if kinds and field.dataType.simpleString() not in kinds:
            raise BadPipeline(
                f"{output.label}: column `{field.name}` is {field.dataType.simpleString()} and has to be "
                f'{" or ".join(kinds)}: f.to_json makes text of a struct, .cast("{kinds[0]}") of anything simple.'
            )


def _check_that_it_updates(output: Output, flow: Flow, base: str) -> None:
    if isinstance(output, Table) and output.on_match != UPDATE:
        raise BadPipeline(
            f"{output.label}: {flow.where(base)} sends a row again whenever it changes, and the table "
            f"{'keeps the first' if output.key else 'would keep them all'}. Say which columns tell the rows apart, and "
            f'that the last one counts: Table("{output.name}", …, key=…, on_match="update").'
        )


def _upstream(flow: Flow, name: str) -> Sequence[str]:
    return [name, *(found for each in flow.inputs.get(name, ()) for found in _upstream(flow, each))]
