"""What the cluster knows of earlier runs of a pipeline, looked at by one that would begin where nothing is kept.

How far a query has read is in its checkpoint, and for everybody to see in a group on the cluster, with the directory
of that run beside it. Who starts the pipeline elsewhere, perhaps only because the default directory is where one
stands, would read everything again: tables begin anew there, which harms nobody, but topics get everything twice. So
it is not done unless somebody says that it is meant, with --reset.
"""

import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klamm.pipeline.declaration import Pipeline
from klamm.pipeline.keeping import Directory
from klamm.pipeline.problems import PipelineError

MOST_NOTE = 1000
"""Characters. Brokers keep 4096 bytes unless told otherwise, and refuse the whole commit if it is more."""

Committed = Mapping[tuple[str, int], tuple[int, str]]
"""Of each partition the offset, and what was noted beside it."""
Ask = Callable[[Collection[str]], Mapping[str, Committed]]
"""What each of these groups has committed. It raises NotSeen if nobody can say."""


class NotSeen(PipelineError):  # noqa: N818
    """Nobody tells how far a group has read."""


class ReadBefore(PipelineError):  # noqa: N818
    """It has read here before, and what it kept of that is not in this directory."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What one group has committed; most often that of one query."""

    group: str
    records: int
    """At most: where its offsets stand, added up."""
    topics: tuple[str, ...]
    place: str = ""
    """HOST:DIRECTORY, where that run noted it."""


def note_of(directory: Path) -> str:
    """Where a run keeps what it has, as it is noted beside its progress."""
    note = f"{socket.gethostname()}:{directory}"
    return note if len(note) <= MOST_NOTE else ""


def group_of(pipeline: Pipeline, query: str) -> str:
    """The consumer group under which `klamm group describe`, and every other tool, sees how far a query has read."""
    return f"{pipeline.name}-{query}"


def earlier_runs(pipeline: Pipeline, kafka: Mapping[str, str], ask: Ask) -> list[Earlier]:
    """`kafka`, the client's settings, may name one group for all queries, and a source one of its own."""
    groups = _groups(pipeline, kafka)
    committed = ask(groups)
    found = []
    for group, topics in sorted(groups.items()):
        its_own = {place: said for place, said in committed[group].items() if place[0] in topics and said[0] > 0}
        if its_own:
            notes = sorted({note for _, note in its_own.values() if ":/" in note})
            records = sum(offset for offset, _ in its_own.values())
            read = tuple(sorted({topic for topic, _ in its_own}))
            found.append(Earlier(group, records, read, notes[0] if notes else ""))
    return found


def _groups(pipeline: Pipeline, kafka: Mapping[str, str]) -> dict[str, set[str]]:
    """With the topics they may have read. Which functions have a query takes Spark to see: here it is all of them."""
    flow, found = pipeline.flow, dict[str, set[str]]()
    for name in (*flow.sources, *flow.functions):
        for source in map(pipeline.source, flow.sources_of(name)):
            group = source.options.get("kafka.group.id", kafka.get("group.id", group_of(pipeline, name)))
            found.setdefault(group, set()).add(source.topic)
    return found


def told(found: list[Earlier], directory: Directory, written: list[str]) -> str:
    """`written` are topics that would get everything once more; without any it is only news."""
    furthest = max(found, key=lambda each: each.records)
    groups = [each.group for each in found]
    where, goes_on = _where(found, directory)
    has_read = (
        f"this pipeline has read on this cluster before, up to {furthest.records:,} records of "
        f"{', '.join(furthest.topics)} (group{'' if len(groups) == 1 else 's'} {_all(groups)}). Of that there is "
        f"nothing in {directory.path}; {where}."
    )
    begins = f"tables begin anew in {directory.tables}"
    if not written:
        return f"{has_read} It reads everything again, and {begins}. {goes_on}"
    topics = f"topic{'' if len(written) == 1 else 's'} {_all(written)}"
    again = f"It would read everything again: {begins}, and {topics} would get everything a second time."
    return f"{has_read} {again} {goes_on} If it is meant to begin again here, say --reset."


def _where(found: list[Earlier], directory: Directory) -> tuple[str, str]:
    """Where the earlier run kept it, and how this one would go on from there."""
    places = sorted({each.place for each in found if each.place})
    if not places:
        return "where it was kept is not known", "To go on from there, run it where it ran before, or name that --data."
    host, _, path = places[0].partition(":")
    if places[0] == note_of(directory.path):
        return "it was kept there, and has gone", "To go on, put its checkpoints back."
    if host != socket.gethostname():
        return f"it was kept in {path} on {host}", f"To go on from there, run it there with --data {path}."
    if not Path(path).is_dir():
        return f"it was kept in {path}, which has gone", "To go on from there, put that back."
    return f"it is in {path}", f"To go on from there: --data {path}."


def _all(names: list[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def asking(bootstrap: str, settings: Mapping[str, str], seconds: float) -> Ask:
    """`settings` as the client library has them, for TLS and SASL."""
    from klamm.pipeline.topics import admin_of

    admin = admin_of(bootstrap, settings, [])

    def ask(groups: Collection[str]) -> dict[str, Committed]:
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        # The library takes one group a call; it asks on its own, so these are asked side by side.
        futures: dict[str, Any] = {}
        for group in groups:
            futures |= admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=seconds)
        try:
            return {group: _committed(future.result(seconds * 2)) for group, future in futures.items()}
        except KafkaException as problem:
            raise NotSeen(problem.args[0].str()) from problem
        except TimeoutError as problem:
            raise NotSeen("nobody answered") from problem

    return ask


def _committed(answer: Any) -> Committed:
    partitions = [each for each in answer.topic_partitions if each.error is None]
    return {(each.topic, each.partition): (each.offset, each.metadata or "") for each in partitions}
