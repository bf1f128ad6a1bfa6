"""`klamm pipeline run`, without the command line: everything looked at before the start, then run to its end.

What can be wrong is found in this order: the file, the cluster, the topics, whether a run with another directory has
read here before (`earlier.py`), Spark and Java, the flow, the checkpoints. Nothing is changed before all of it is
right, but for topics that the pipeline writes to; until then whoever interrupts it need not wait for anything. What
--reset forgets, it forgets last, when these are made: neither a mistake in the file nor a cluster that refuses shall
cost anybody their tables.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from klamm.pipeline import topics
from klamm.pipeline.causes import paragraph
from klamm.pipeline.earlier import NotSeen, ReadBefore, asking, earlier_runs, written_again
from klamm.pipeline.earlier import told as told_earlier
from klamm.pipeline.keeping import REMEDY, Directory
from klamm.pipeline.loading import Loaded
from klamm.pipeline.planning import planned
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.progress import Standing
from klamm.pipeline.queries import Queries, Wishes, new_columns, standing_of
from klamm.pipeline.reaching import Reaching
from klamm.pipeline.resetting import Reset
from klamm.pipeline.session import LOCAL
from klamm.pipeline.spark import GOES_ON, session
from klamm.pipeline.stopping import StopSignals

LOOK_SECONDS = 0.25
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stopTimeout": "60000",
}

Watch = Callable[[Standing, list[str]], None]
"""Called a few times a second: how it stands, and which queries have said something since."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    loaded: Loaded
    directory: Directory
    wishes: Wishes
    master: str = LOCAL
    settings: dict[str, str] = field(default_factory=dict)
    """Of Spark."""
    makes_topics: bool = True
    reset: Reset | None = None
    is_verbose: bool = False

    @property
    def log(self) -> Path | None:
        """Where Spark's own log goes; None for the terminal."""
        return None if self.is_verbose else self.directory.path / "spark.log"


@dataclass(frozen=True, slots=True)
class Outcome:
    standing: Standing
    was_stopped: bool
    """By a signal, before it was done."""


class Failed(PipelineError):  # noqa: N818
    """A query stopped. `cause` is all there is to know."""

    def __init__(self, text: str, standing: Standing, cause: BaseException) -> None:
        super().__init__(text)
        self.standing, self.cause = standing, cause


def run(job: Job, watch: Watch, say: Say, at_end: Callable[[], None] = lambda: None) -> Outcome:
    """Interrupted, if a signal comes while nothing is changed yet; PipelineError for what is wrong."""
    with job.directory.held(), StopSignals(say, at_end) as signals:
        cluster = topics.seen(job.wishes.bootstrap, _client_settings(job.wishes))
        new = topics.missing(job.loaded.pipeline, cluster)
        if new and not job.makes_topics:
            commands = "; ".join(f"`{each.command}`" for each in new)
            raise topics.NoTopic(f"topics are missing that the pipeline writes to. Make them: {commands}.")
        if job.reset is None:
            job.directory.check_cluster(cluster.cluster_id)
            if topics.GROUPS in cluster.partitions and not job.directory.is_begun:
                _look_back(job, new, say)
        say(f"starting Spark ({job.master}) ...")
        starts = time.monotonic()
        with session(job.loaded, job.master, {**SETTINGS, **job.settings}, job.log) as spark:
            plan = planned(spark, job.loaded.pipeline)
            # Tables that are to go need not fit.
            is_emptied = job.reset is not None and job.reset.drops_tables
            grown = {} if is_emptied else new_columns(spark, plan, job.directory)
            if job.reset is not None:
                job.reset.check(job.directory, job.loaded.pipeline)
            signals.begin()
            if job.reset is not None:
                _make_topics(job, new, say)
                if signals.were_seen:
                    return Outcome(standing_of(plan), was_stopped=True)
                job.reset.carry_out(job.directory, job.loaded.pipeline, say)
            queries = Queries(spark, plan, job.directory, cluster.cluster_id, job.wishes)
            for surprise in surprises(queries, grown, job.directory):
                say(surprise)
            if job.reset is None:
                _make_topics(job, new, say)
            queries.standing.start_seconds = time.monotonic() - starts
            return _carried_out(job, queries, watch, signals, say)


def surprises(queries: Queries, grown: dict[str, list[str]], directory: Directory) -> list[str]:
    """What begins in the middle, and what a table did not have before."""
    how = "It gets what comes from now on; --reset reads the topics from their beginning again."
    new = [f"new in query {name}: {', '.join(outputs)}. {how}" for name, outputs in queries.new_outputs.items()]
    missing = [
        f"missing: {', '.join(tables)}. Query {name} has written to it before, and it is not in {directory.path} any "
        f"more. Stop now if it can be put back. {how}"
        for name, tables in queries.missing_tables.items()
    ]
    more = [
        f"{label} gets {'a new column' if len(columns) == 1 else 'new columns'}: {', '.join(columns)}. Rows that are "
        "there have null in it."
        for label, columns in grown.items()
    ]
    return [*new, *missing, *more]


def _carried_out(job: Job, queries: Queries, watch: Watch, signals: StopSignals, say: Say) -> Outcome:
    # The first query is in a batch while the others are being started: no batch shall be older than the run.
    began = time.monotonic()
    queries.start(stops=lambda: signals.were_seen)
    with Reaching(job.wishes.bootstrap, say):
        return _watched(job, queries, watch, signals, began)


def _watched(job: Job, queries: Queries, watch: Watch, signals: StopSignals, began: float) -> Outcome:
    def look() -> None:
        spoke = queries.poll()
        queries.standing.seconds = time.monotonic() - began
        watch(queries.standing, spoke)

    while not queries.is_over and not signals.were_seen:
        look()
        time.sleep(LOOK_SECONDS)
    was_stopped = not queries.is_over
    queries.stop()
    look()
    failure = queries.failure
    if failure is not None:
        name, problem = failure
        told = paragraph(problem, job.loaded.path)
        next_time = f"Its state is of another kind. {REMEDY}" if "STATE_STORE" in told else GOES_ON
        # What was said may end with lines to copy.
        end = "\n" if told.endswith("\n") else ". "
        raise Failed(
            f"query {name} stopped: {told.rstrip('.')}{end}{next_time}", queries.standing, problem
        ) from problem
    return Outcome(queries.standing, was_stopped)


def _look_back(job: Job, new: list[topics.NewTopic], say: Say) -> None:
    """ReadBefore if it would write again to topics what an earlier run with another directory has written there."""
    ask = asking(job.wishes.bootstrap, job.wishes.kafka)
    pipeline = job.loaded.pipeline
    try:
        found = earlier_runs(pipeline, job.wishes.kafka, ask)
    except NotSeen as problem:
        # Perhaps nobody may look at groups here: that is no reason not to read.
        say(f"whether this pipeline has read on this cluster before could not be seen: {problem}")
        return
    if not found:
        return
    made_now = {each.name for each in new}
    outputs, bad = written_again(pipeline, found)
    written, quarantines = ([name for name in names if name not in made_now] for names in (outputs, bad))
    text = told_earlier(found, job.directory, written, quarantines)
    if written:
        raise ReadBefore(text)
    say(text)


def _make_topics(job: Job, new: list[topics.NewTopic], say: Say) -> None:
    for each in new:
        say(f"making topic {each.name}: {_many(each.partitions, 'partition')}, {_many(each.replicas, 'replica')}")
    topics.make(new, job.wishes.bootstrap, _client_settings(job.wishes))


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _client_settings(wishes: Wishes) -> dict[str, str]:
    from klamm.pipeline.kafka.security import with_security

    return with_security(wishes.kafka)
