"""Where a stream stands, as Spark's checkpoint keeps it: the connector's JSON and one member more.

    {"orders": {"0": 23, "1": 7}, "_klamm": {"format": 1, "cluster": "…", "topics": {"orders": "<topic id>"}}}

With the cluster's id a checkpoint cannot be taken to another cluster unnoticed, and with the topics' ids a topic that
was deleted and created again is noticed although its name is the same. Spark's connector refuses a checkpoint with
this member, and we refuse one without it. Spark compares positions as text, so equal ones are written alike.

A new query's first position is `initial`; the end of its first batch keeps it as `began`. Should the driver die in the
first batch, the same records are read again, although `latest` is somewhere else by then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from klamm.ids import TopicPartition
from klamm.pipeline.source.problems import WrongCheckpoint

MEMBER = "_klamm"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Position:
    """`topics` are the topics' ids as text; empty where the cluster has none."""

    cluster: str
    topics: dict[str, str]
    offsets: dict[TopicPartition, int]
    is_initial: bool = False
    began: dict[TopicPartition, int] | None = field(default=None, compare=False)

    def stands_where(self, other: "Position") -> bool:
        return (self.cluster, self.topics, self.offsets) == (other.cluster, other.topics, other.offsets)


def as_json(position: Position, said: Sequence[str] = ()) -> dict[str, Any]:
    """`said`: what a person should hear, in a position that goes into Spark's progress reports only."""
    member: dict[str, Any] = {"format": FORMAT, "cluster": position.cluster}
    member["topics"] = dict(sorted(position.topics.items()))
    if position.is_initial:
        member["initial"] = True
    if position.began is not None:
        member["began"] = _by_topic(position.began)
    if said:
        member["said"] = list(said)
    return {**_by_topic(position.offsets), MEMBER: member}


def from_json(read: Mapping[str, Any]) -> Position:
    member = read.get(MEMBER)
    if not isinstance(member, Mapping):
        raise WrongCheckpoint(
            "This checkpoint was not written by format('klamm'): its offsets lack the cluster and the topics' ids. It "
            "is probably one of Spark's Kafka connector (format('kafka')). Give this query a checkpoint location of "
            "its own, and to go on where the other query was, pass its last offsets as startingOffsets."
        )
    if member.get("format") != FORMAT:
        raise WrongCheckpoint(
            f"This checkpoint has the format {member.get('format')!r}, this version of Klamm reads {FORMAT}. Use the "
            "version of Klamm that wrote it, or a new checkpoint location."
        )
    began = member.get("began")
    return Position(
        cluster=str(member["cluster"]),
        topics={str(name): str(topic_id) for name, topic_id in member["topics"].items()},
        offsets=_offsets({name: value for name, value in read.items() if name != MEMBER}),
        is_initial=bool(member.get("initial", False)),
        began=None if began is None else _offsets(began),
    )


def said_in(report: Mapping[str, Any]) -> list[str]:
    """What the sources of a query say in one of Spark's progress reports: the same texts until there are newer ones.
    A report has positions as text, its JSON has them taken apart."""
    found: list[str] = []
    for source in report.get("sources", ()):
        try:
            latest = source.get("latestOffset") or "{}"
            latest = json.loads(latest) if isinstance(latest, str) else latest
            found += latest.get(MEMBER, {}).get("said", ())
        except (AttributeError, TypeError, ValueError):
            # Somebody else's source.
            continue
    return found


def check_cluster(position: Position, cluster: str) -> None:
    if position.cluster and cluster and position.cluster != cluster:
        raise WrongCheckpoint(
            f"This checkpoint belongs to another cluster: it was written for {position.cluster}, and "
            f"kafka.bootstrap.servers leads to {cluster}. Offsets of one cluster mean nothing in another. Point "
            "kafka.bootstrap.servers to the first one, or give the query a new checkpoint location."
        )


def _by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for key, offset in sorted(offsets.items()):
        found.setdefault(key.topic, {})[str(key.partition)] = offset
    return found


def _offsets(read: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, offsets in read.items()
        for partition, offset in offsets.items()
    }
