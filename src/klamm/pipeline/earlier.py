"""What the cluster knows of earlier runs of a pipeline, looked at by one that would begin where nothing is kept.

How far a query has read is in its checkpoint, and for everybody to see in a group on the cluster, with the name of the
pipeline and the directory of that run beside it. Who starts the pipeline elsewhere, perhaps only because the default
directory is where one stands, would read everything again: tables begin anew there, which harms nobody, but the topics
of its outputs get everything twice. So it is not done unless somebody says that it is meant, with --reset.

A group may have been given to several pipelines: only what this one has noted is its own. And a source that is told
where to begin does not read everything again.
"""

import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from klamm.pipeline.declaration import Pipeline, Source, Topic
from klamm.pipeline.keeping import Directory
from klamm.pipeline.problems import PipelineError, together

if TYPE_CHECKING:
    from klamm.pipeline.kafka.access import Committed

MOST_NOTE = 1000
"""Characters. Brokers keep 4096 bytes unless told otherwise, and refuse the whole commit if it is more."""

Ask: TypeAlias = "Callable[[Collection[str]], Mapping[str, Committed]]"
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
    """HOST:DIRECTORY, if that run noted it."""


def note_of(pipeline: Pipeline, directory: Path) -> str:
    """NAME@HOST:DIRECTORY: whose progress it is, and where it keeps what it has. No name has an @ in it."""
    note = f"{pipeline.name}@{_place_of(directory)}"
    return note if len(note) <= MOST_NOTE else f"{pipeline.name}@"


def _place_of(directory: Path) -> str:
    return f"{socket.gethostname()}:{directory}"


def group_of(pipeline: Pipeline, query: str) -> str:
    """The consumer group under which `klamm group describe`, and every other tool, sees how far a query has read."""
    return f"{pipeline.name}-{query}"


def earlier_runs(pipeline: Pipeline, kafka: Mapping[str, str], ask: Ask) -> list[Earlier]:
    """`kafka`, the client's settings, may name one group for all queries, and a source one of its own."""
    groups = _groups(pipeline, kafka)
    if not groups:
        return []
    committed = ask(groups)
    nobody_elses = {group_of(pipeline, name) for name in (*pipeline.flow.sources, *pipeline.flow.functions)}
    found = []
    for group, topics in sorted(groups.items()):
        its_own = [
            (topic, offset, note.partition("@")[2])
            for (topic, _), (offset, note) in committed[group].items()
            if topic in topics and offset > 0 and _is_its_own(note, pipeline, group in nobody_elses)
        ]
        if its_own:
            places = sorted({place for _, _, place in its_own if ":/" in place})
            records = sum(offset for _, offset, _ in its_own)
            read = tuple(sorted({topic for topic, _, _ in its_own}))
            found.append(Earlier(group, records, read, places[0] if places else ""))
    return found


def _is_its_own(note: str, pipeline: Pipeline, is_its_group: bool) -> bool:
    """Without a note, for instance after `klamm group reset`, the group has to tell whose it is."""
    name, is_noted, _ = note.partition("@")
    return name == pipeline.name if is_noted else is_its_group


def _groups(pipeline: Pipeline, kafka: Mapping[str, str]) -> dict[str, set[str]]:
    """With the topics they may have read. Which functions have a query takes Spark to see: here it is all of them."""
    flow, found = pipeline.flow, dict[str, set[str]]()
    for name in (*flow.sources, *flow.functions):
        for source in filter(_is_read_again, map(pipeline.source, flow.sources_of(name))):
            group = source.options.get("kafka.group.id", kafka.get("group.id", group_of(pipeline, name)))
            found.setdefault(group, set()).add(source.topic)
    return found


def _is_read_again(source: Source) -> bool:
    """From its beginning, because nothing says otherwise. Spark compares names without regard to case."""
    given = {name.lower(): str(text).strip().lower() for name, text in source.options.items()}
    is_timed = "startingtimestamp" in given or "startingoffsetsbytimestamp" in given
    return not is_timed and given.get("startingoffsets", "earliest") == "earliest"


def written_again(pipeline: Pipeline, found: list[Earlier]) -> tuple[list[str], list[str]]:
    """Topics of its outputs that get everything once more, and those that get once more what is bad."""
    topics = {topic for each in found for topic in each.topics}
    again = {source.name for source in pipeline.sources if source.topic in topics and _is_read_again(source)}
    outputs = [
        output.name
        for output in pipeline.outputs
        if isinstance(output, Topic) and again & {*pipeline.flow.sources_of(output.function.__name__)}
    ]
    return outputs, [source.quarantine_topic for source in pipeline.quarantining if source.name in again]


def told(found: list[Earlier], directory: Directory, written: list[str], quarantines: list[str]) -> str:
    """`written` are topics of outputs that would get everything once more; without any it is only news."""
    furthest = max(found, key=lambda each: each.records)
    groups = [each.group for each in found]
    where, goes_on = _where(found, directory)
    was_here = _was_here(found, directory)
    has_read = (
        f"this pipeline has read on this cluster before, up to {furthest.records:,} records of "
        f"{', '.join(furthest.topics)} (group{'' if len(groups) == 1 else 's'} {together(groups)}). Of that there "
        f"is nothing in {directory.path}; {where}."
    )
    begins = f"tables begin anew in {directory.tables}"
    if directory.tables.is_dir():
        begins = f"tables that are in {directory.tables} stay with their rows"
    goes = "would go" if written else "goes"
    bad = f" What is bad {goes} to {_topics(quarantines)} a second time." if quarantines else ""
    if not written:
        return f"{has_read} It reads everything again, and {begins}.{bad} {goes_on}"
    again = f"It would read everything again: {begins}, and {_topics(written)} would get everything a second time.{bad}"
    if was_here:
        return f"{has_read} {again} --reset begins anew. {goes_on}"
    return f"{has_read} {again} {goes_on} If it is meant to begin again here, say --reset."


def _topics(names: list[str]) -> str:
    return f"topic{'' if len(names) == 1 else 's'} {together(names)}"


def _was_here(found: list[Earlier], directory: Directory) -> bool:
    return any(each.place == _place_of(directory.path) for each in found)


def _where(found: list[Earlier], directory: Directory) -> tuple[str, str]:
    """Where the earlier run kept it, and how this one would go on from there."""
    places = sorted({each.place for each in found if each.place})
    if not places:
        return "where it was kept is not known", "To go on from there, run it where it ran before, or name that --data."
    if _was_here(found, directory):
        return "what was kept there has gone", "To go on from where it was instead, put its checkpoints back."
    host, _, path = places[0].partition(":")
    if host != socket.gethostname():
        return f"it was kept in {path} on {host}", f"To go on from there, run it there with --data {path}."
    if not Path(path).is_dir():
        return f"it was kept in {path}, which has gone", "To go on from there, put that back."
    return f"it is in {path}", f"To go on from there: --data {path}."


def asking(bootstrap: str, settings: Mapping[str, str]) -> Ask:
    """By whoever would read for a query; `settings` are the `kafka.` options without that prefix."""
    from klamm.pipeline.kafka.access import opened
    from klamm.pipeline.kafka.problems import ClusterProblem
    from klamm.pipeline.source.options import stream_options

    kafka = {f"kafka.{name}": text for name, text in settings.items()}
    given = stream_options({**kafka, "kafka.bootstrap.servers": bootstrap, "subscribe": "none"})

    def ask(groups: Collection[str]) -> "dict[str, Committed]":
        access = opened(given.cluster, given.reader)
        try:
            return {group: access.written_down(group) for group in groups}
        except ClusterProblem as problem:
            raise NotSeen(str(problem)) from problem
        finally:
            access.close()

    return ask
