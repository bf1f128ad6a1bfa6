"""The queries of a pipeline on Spark: started, watched, and stopped after the batch they are at.

If one fails, all stop: a pipeline whose tables drift apart is worse than one that stands still. What a query had
finished stays; the next run goes on from there.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klamm.pipeline import parsing
from klamm.pipeline.declaration import Pipeline, Source, Table
from klamm.pipeline.earlier import group_of, note_of
from klamm.pipeline.keeping import Directory, application
from klamm.pipeline.planning import Plan, PlannedQuery, given
from klamm.pipeline.problems import BadPipeline
from klamm.pipeline.progress import QueryStanding, Standing, UnderWay, note
from klamm.pipeline.tables import DoesNotFit, open_table
from klamm.pipeline.writing import QUARANTINE_KEY, BatchWriter, Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "klamm"
PAUSE_SECONDS = 0.05
STOP_SECONDS = 30.0
PASSING = (
    "Python worker failed to connect back",
    "Timed out while waiting for the Python worker to connect back",
    "a query with that name is already active",
    "another query with same id is already active",
)
"""Spark gives a Python worker ten seconds to start, which no setting changes. On a busy machine that is not always
enough, and it says nothing about the pipeline: the query is started again. Then Spark may not have put the old one away
yet."""
MOST_RESTARTS = 5
"""Without a batch in between that is written."""
RESTART_SECONDS = 0.5
INITIALIZING = "Initializing sources"


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a pipeline is to run."""

    bootstrap: str
    once: bool = False
    batch_records: int = 200_000
    every_seconds: float = 1.0
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of the clients, by Kafka's names."""


@dataclass(slots=True)
class _Running:
    query: "StreamingQuery"
    writer: BatchWriter
    restarts: int = 0
    seen: set[str] = field(default_factory=set)
    """Those of Spark's recent reports that were noted: by their time, which Spark gives each."""

    @property
    def problem(self) -> BaseException | None:
        return self.writer.failure or (None if self.query.isActive else self.query.exception())


class Queries:
    def __init__(
        self, spark: "SparkSession", plan: Plan, directory: Directory, cluster_id: str, wishes: Wishes
    ) -> None:
        self._spark, self._plan, self._directory, self._wishes = spark, plan, directory, wishes
        self._gate = Gate()
        claims = {query.name: directory.claimed(query, cluster_id) for query in plan.queries}
        self._claims = claims
        self.new_outputs = {name: claim.new_outputs for name, claim in claims.items() if claim.new_outputs}
        """Of queries that have read something already: these outputs begin in the middle."""
        self.missing_tables = {name: claim.missing_tables for name, claim in claims.items() if claim.missing_tables}
        """Of queries that have written something already: these begin in the middle as well."""
        self._running: dict[str, _Running] = {}
        self.standing = standing_of(plan)
        self.failure: tuple[str, BaseException] | None = None
        """The first query that failed, and of what."""

    def start(self, stops: Callable[[], bool] = lambda: False) -> None:
        """One after the other: several Python workers that start at once take longer, each of them. Whoever `stops` is
        spared the rest."""
        for name, claim in self._claims.items():
            self._directory.settle(name, claim)
        for query in self._plan.queries:
            if stops():
                return
            self._start(query)
            started = self._running[query.name].query
            while started.isActive and started.status["message"] == INITIALIZING:
                time.sleep(PAUSE_SECONDS)

    def poll(self) -> list[str]:
        """The queries that have something new to say; it is in `standing`."""
        spoke = []
        for name, running in list(self._running.items()):
            is_over = not running.query.isActive
            reports = [_parsed(report) for report in running.query.recentProgress]
            for report in reports:
                if report["timestamp"] not in running.seen:
                    done = running.writer.done.pop(report["batchId"], None)
                    running.restarts = running.restarts if done is None else 0
                    note(self.standing, name, report, done)
                    spoke.append(name)
            running.seen = {report["timestamp"] for report in reports}
            self.standing.queries[name].under_way = UnderWay.of(running.writer.at)
            if is_over and not self._gate.is_closed:
                self._note_end(name, running)
        return spoke

    @property
    def is_over(self) -> bool:
        """All are done, or one has failed, as far as `poll` has seen."""
        return self.failure is not None or all(query.is_over for query in self.standing.queries.values())

    def stop(self) -> None:
        """After the batch that each is at. Blocks until then."""
        self._gate.close()
        while not all(self._is_at_rest(name) for name in self._running):
            time.sleep(PAUSE_SECONDS)
        # Who has ended by now was not stopped by us, nor who failed in a batch and is ending. What Spark says of those
        # that it stops is of no interest.
        for name, running in self._running.items():
            if running.writer.failure is not None or not running.query.isActive:
                self._note_end(name, running)
        stopping = [threading.Thread(target=running.query.stop) for running in self._running.values()]
        for thread in stopping:
            thread.start()
        # Spark has to know that it is to stop before a batch at the gate fails, or it would take that for an error.
        until = time.monotonic() + STOP_SECONDS
        while any(running.query.isActive for running in self._running.values()) and time.monotonic() < until:
            time.sleep(PAUSE_SECONDS)
        self._gate.release()
        for thread in stopping:
            thread.join(STOP_SECONDS)

    def _note_end(self, name: str, running: _Running) -> None:
        problem = running.problem
        if problem is None:
            self.standing.queries[name].is_over = True
        elif running.restarts < MOST_RESTARTS and _is_passing(problem):
            if not self._gate.is_closed:
                self._start(running.writer.query, running.restarts + 1)
        elif self.failure is None:
            self.failure = name, problem
            # Spark reports nothing of a batch that failed, and what was written of it is written.
            self.standing.done.add(running.writer.begun)

    def _is_at_rest(self, name: str) -> bool:
        running = self._running[name]
        if name in self._gate.waiting or not running.query.isActive:
            return True
        return not running.query.status["isTriggerActive"]

    def _start(self, query: PlannedQuery, restarts: int = 0) -> None:
        try:
            self._running[query.name] = self._started(query, restarts)
        except Exception as problem:
            if restarts == MOST_RESTARTS or not _is_passing(problem):
                raise
            time.sleep(RESTART_SECONDS)
            self._start(query, restarts + 1)

    def _started(self, query: PlannedQuery, restarts: int) -> _Running:
        writer = BatchWriter(query, self._plan.pipeline.flow, self._gate, self._tables(query), self._write_topic)
        stream = self._stream(query).writeStream.queryName(f"{self._plan.pipeline.name}.{query.name}")
        stream = stream.outputMode(query.mode).option("checkpointLocation", str(self._directory.checkpoint(query.name)))
        if self._wishes.once:
            stream = stream.trigger(availableNow=True)
        else:
            stream = stream.trigger(processingTime=f"{round(self._wishes.every_seconds * 1000)} milliseconds")
        return _Running(stream.foreachBatch(writer).start(), writer, restarts)

    def _stream(self, query: PlannedQuery) -> "DataFrame":
        records = {source.name: self._records(source, query) for source in query.sources}
        if query.is_of_source:
            stream = records[query.name]
            return stream if query.quarantines is None else parsing.judged(stream, query.quarantines)
        frames = {source.name: given(records[source.name], source) for source in query.sources}
        return self._plan.pipeline.flow.frame(query.name, frames)

    def _records(self, source: Source, query: PlannedQuery) -> "DataFrame":
        options = reading(self._plan.pipeline, query.name, source, self._directory, self._wishes)
        return self._spark.readStream.format(FORMAT).options(**options).load()

    def _tables(self, query: PlannedQuery) -> dict[str, Any]:
        wanted = {output.name: _settings(output) for output in query.outputs if isinstance(output, Table)}
        if query.quarantines is not None:
            wanted[query.quarantines.quarantine_table] = {"key": QUARANTINE_KEY}
        return {
            name: open_table(
                self._spark,
                self._directory.table(name),
                application=application(
                    self._plan.pipeline.name, query.name, name, self._claims[query.name].checkpoint_id
                ),
                **settings,
            )
            for name, settings in wanted.items()
        }

    def _write_topic(self, rows: "DataFrame", topic: str, options: Mapping[str, str]) -> None:
        told = {**_kafka_options(self._wishes), "topic": topic, **options}
        rows.write.format(FORMAT).options(**told).mode("append").save()


def reading(pipeline: Pipeline, query: str, source: Source, directory: Directory, wishes: Wishes) -> dict[str, str]:
    """The options with which a query reads one of its sources. What the source says itself goes before all else."""
    return {
        "subscribe": source.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(wishes.batch_records),
        "kafka.group.id": group_of(pipeline, query),
        "klamm.group.note": note_of(pipeline, directory.path),
        **_kafka_options(wishes),
        **source.options,
    }


def _kafka_options(wishes: Wishes) -> dict[str, str]:
    more = {f"kafka.{name}": value for name, value in wishes.kafka.items()}
    return {"kafka.bootstrap.servers": wishes.bootstrap, **more}


def new_columns(spark: "SparkSession", plan: Plan, directory: Directory) -> dict[str, list[str]]:
    """Of tables that are there, by their labels; BadPipeline if a table's rows do not fit it any more."""
    found = {}
    for output in plan.pipeline.outputs:
        if isinstance(output, Table):
            table = open_table(spark, directory.table(output.name), application="", **_settings(output))
            try:
                found[output.label] = table.new_columns(plan.schemas[output.label])
            except DoesNotFit as problem:
                raise BadPipeline(f"{output.label}: {problem}") from problem
    return {label: columns for label, columns in found.items() if columns}


def _settings(output: Table) -> dict[str, Any]:
    return {"format": output.format, "key": tuple(output.key), "on_match": output.on_match}


def _is_passing(problem: BaseException) -> bool:
    return any(words in str(problem) for words in PASSING)


def standing_of(plan: Plan) -> Standing:
    quarantines = [
        label
        for source in plan.pipeline.quarantining
        for label in (f"table {source.quarantine_table}", f"topic {source.quarantine_topic}")
    ]
    return Standing(
        plan.pipeline.name,
        {
            query.name: QueryStanding(query.name, tuple(source.topic for source in query.sources))
            for query in plan.queries
        },
        tuple(output.label for output in plan.pipeline.outputs),
        tuple(quarantines),
    )


def _parsed(report: Any) -> dict[str, Any]:
    import json

    parsed: dict[str, Any] = json.loads(report.json)
    return parsed
