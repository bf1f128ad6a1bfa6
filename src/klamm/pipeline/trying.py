"""A pipeline on a few rows: its transforms run as batches, without a cluster, so that a person or a test can look.

    frames = loaded("orders.py").pipeline.apply(spark, {"orders": [{"id": "a", "total": 3}]})
    assert [row.id for row in frames["orders"].collect()] == ["a"]

The values go through the same parsing as records do. In a batch all windows are complete and nothing is late. What
Spark does on streams only (dropDuplicatesWithinWatermark) runs as a stream over the same rows.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.pipeline import parsing
from klamm.pipeline.causes import paragraph
from klamm.pipeline.declaration import UPDATE, Output, Pipeline, Source, Table
from klamm.pipeline.planning import HEADERS, RECORD
from klamm.pipeline.problems import BadPipeline, PipelineError, meant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIKE = (str, bytes, bytearray)


@dataclass(frozen=True, slots=True)
class Tried:
    """One output on the examples. `complaint` is empty if it is as expected."""

    label: str
    columns: list[str]
    rows: list[dict[str, Any]]
    complaint: str


def applied(pipeline: Pipeline, spark: "SparkSession", given: Mapping[str, Any]) -> "dict[str, DataFrame]":
    """Each output's frame by its name, and those of quarantine."""
    frames, quarantined = _frames(pipeline, spark, given)
    made = {output.name: pipeline.flow.frame(output.function.__name__, frames) for output in pipeline.outputs}
    return {**made, **quarantined}


def tried(pipeline: Pipeline, spark: "SparkSession") -> list[Tried]:
    """On the sources' examples."""
    if not any(source.examples for source in pipeline.sources):
        raise PipelineError(
            f"pipeline {pipeline.name} has no examples to try it with. Give its source a few: "
            f'Source("{pipeline.sources[0].topic}", …, examples=[{{"id": "a"}}, "not JSON"]).'
        )
    frames, quarantined = _frames(pipeline, spark, {source.name: source.examples for source in pipeline.sources})
    results = []
    for output in pipeline.outputs:
        name = output.function.__name__
        try:
            frame = pipeline.flow.frame(name, frames)
            rows = _collected(frame)
        except PipelineError:
            raise
        except Exception as problem:
            if "dropDuplicatesWithinWatermark" not in str(problem):
                raise BadPipeline(f"{output.label}, {pipeline.flow.where(name)}: {paragraph(problem)}") from problem
            frame, rows = _as_stream(pipeline, spark, name)
        rows = kept(output, rows)
        results.append(Tried(output.label, frame.columns, rows, complaint(output, rows)))
    for name, frame in quarantined.items():
        results.append(Tried(f"table {name}", frame.columns, _collected(frame), ""))
    return results


def kept(output: Output, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a table with a key would hold of them: one row a key."""
    if not isinstance(output, Table) or not output.key:
        return list(rows)
    by_key: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        place = tuple(repr(row[name]) for name in output.key)
        if output.on_match == UPDATE or place not in by_key:
            by_key[place] = row
    return list(by_key.values())


def complaint(output: Output, rows: Sequence[Mapping[str, Any]]) -> str:
    """Whether the rows are those expected, in any order; columns that the expectation leaves out are not compared."""
    if output.expect is None:
        return ""
    left = list(rows)
    for expected in output.expect:
        unknown = [name for name in expected if rows and name not in rows[0]]
        if unknown:
            return f"it expects a column `{unknown[0]}`, which is not there.{meant(unknown[0], rows[0])}"
        found = next((row for row in left if all(_is_same(row[name], value) for name, value in expected.items())), None)
        if found is None:
            return f"there is no row {shown(expected)}{_nearest(expected, left)}"
        left.remove(found)
    if not left:
        return ""
    known = any(all(_is_same(left[0][name], value) for name, value in each.items()) for each in output.expect)
    return f"there is a row {'more often than' if known else 'that is not'} expected: {shown(left[0])}"


def shown(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())


def _nearest(expected: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """In which columns the row that is most like it differs."""
    differing = [{name for name, value in expected.items() if not _is_same(row[name], value)} for row in rows]
    fewest = min(differing, key=len, default=set(expected))
    if len(fewest) == len(expected):
        return ""
    row = rows[differing.index(fewest)]
    others = {name: row[name] for name in expected if name in fewest}
    return f"; the row that is most like it has {shown(others)}"


def _is_same(found: Any, expected: Any) -> bool:
    """As equal as a person would say: 3 and Decimal('3.00'), a time and its text, bytes and their text."""
    if found == expected:
        return True
    if isinstance(found, datetime) and isinstance(expected, datetime | str):
        return _is_same_time(found, expected)
    if isinstance(found, bytes | bytearray) and isinstance(expected, str):
        return bytes(found) == expected.encode()
    if isinstance(found, Mapping) and isinstance(expected, Mapping):
        return all(name in found and _is_same(found[name], value) for name, value in expected.items())
    if isinstance(found, list) and isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(_is_same, found, expected))
    if isinstance(expected, bool) or isinstance(found, bool) or found is None or expected is None:
        return False
    if isinstance(found, str) != isinstance(expected, str):
        return str(found) == str(expected)
    return isinstance(expected, float | int) and abs(float(found) - float(expected)) < 1e-9


def _is_same_time(found: datetime, expected: datetime | str) -> bool:
    """Spark hands times out in this machine's zone and without it. Who names a zone means an instant."""
    if isinstance(expected, str):
        try:
            expected = datetime.fromisoformat(expected)
        except ValueError:
            return False
    if (found.tzinfo is None) == (expected.tzinfo is None):
        return found == expected
    return found.astimezone(UTC) == expected.astimezone(UTC)


def _frames(
    pipeline: Pipeline, spark: "SparkSession", given: Mapping[str, Any]
) -> "tuple[dict[str, DataFrame], dict[str, DataFrame]]":
    frames, quarantined = {}, {}
    for name in given:
        if name not in pipeline.flow.sources:
            raise BadPipeline(f"there is no source `{name}`.{meant(name, pipeline.flow.sources)}")
    for source in pipeline.sources:
        rows = given.get(source.name, ())
        if hasattr(rows, "isStreaming"):
            frames[source.name] = rows
            continue
        records = _records(spark, source, rows)
        if source.json is None:
            frames[source.name] = records
            continue
        judged = parsing.judged(records, source)
        frames[source.name] = parsing.good(judged)
        quarantined[source.quarantine_table] = parsing.refused(judged)
    return frames, quarantined


def _records(spark: "SparkSession", source: Source, values: Sequence[object]) -> "DataFrame":
    """As if they had been read from partition 0, one after the other, now."""
    with_headers = source.options.get("includeHeaders", "false").lower() == "true"
    now = datetime.now(UTC)
    rows = [
        (None, _bytes(value), source.topic, 0, offset, now, 0, *([None] if with_headers else []))
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, f"{RECORD}, {HEADERS}" if with_headers else RECORD).coalesce(1)


def _bytes(value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, LIKE):
        return value.encode() if isinstance(value, str) else bytes(value)
    return json.dumps(value, default=str).encode()


def _as_stream(pipeline: Pipeline, spark: "SparkSession", name: str) -> "tuple[DataFrame, list[dict[str, Any]]]":
    """The rows once more, as a stream of one batch, from files."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        frames = {}
        for source in pipeline.sources:
            place = str(Path(directory) / source.name)
            written = _records(spark, source, source.examples)
            written.write.parquet(place)
            records = spark.readStream.schema(written.schema).parquet(place)
            frames[source.name] = records if source.json is None else parsing.good(parsing.judged(records, source))
        frame = pipeline.flow.frame(name, frames)
        writing = frame.writeStream.outputMode("update").trigger(availableNow=True)
        writing = writing.option("checkpointLocation", str(Path(directory) / "checkpoint"))
        query = writing.foreachBatch(lambda batch, number: rows.extend(_collected(batch))).start()
        query.awaitTermination()
    return frame, rows


def _collected(frame: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]
