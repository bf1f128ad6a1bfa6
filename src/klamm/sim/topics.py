"""The topics of a run, and the settings that make something happen to them within its few seconds.

Four are always there: `steady` is an ordinary one, `flushed` acknowledges only what is on disk, `again` is deleted and
created anew, nobody writes to `quiet`. Of the others each run has some: from `trimmed` an operator deletes records,
`brief` keeps only so many bytes, `aged` only what is young, `compacted` the last record of each key. `loose` and
`rescued` are content with one replica in sync; when that is gone `loose` takes any other for its leader, `rescued` if
an operator says so. `crowd` has many partitions, and what is done to it is done to all of them. Where there are groups,
brokers create `__consumer_offsets` by themselves: a topic like `steady`, and compacted. Some topics of a run are
flushed after a while (`flush.ms`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

SMALL_SEGMENTS = {"internal.segment.bytes": "700", "index.interval.bytes": "100", "min.insync.replicas": "2"}

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    # Longer than clocks jump. (When a tombstone goes, a replica that was away for longer may still have what it meant.)
    "delete.retention.ms": "31536000000",
}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    settings: dict[str, str]

    def number(self, setting: str) -> int:
        """One of its settings; -1 if it has none."""
        return int(self.settings.get(setting, "-1"))


ALWAYS = (
    TopicPlan("steady", 3, {"min.insync.replicas": "2", "segment.bytes": "1048576"}),
    TopicPlan("flushed", 2, {"min.insync.replicas": "2", "flush.messages": "1"}),
    TopicPlan("again", 2, {"min.insync.replicas": "2"}),
    TopicPlan("quiet", 2, {"min.insync.replicas": "2"}),
)
AGAIN, QUIET = ALWAYS[2:]
SOMETIMES = (
    TopicPlan("trimmed", 2, SMALL_SEGMENTS),
    TopicPlan("brief", 1, SMALL_SEGMENTS | {"retention.bytes": "2500", "retention.ms": "-1"}),
    TopicPlan("aged", 1, SMALL_SEGMENTS | {"retention.ms": "4000"}),
    TopicPlan("compacted", 2, SMALL_SEGMENTS | COMPACTED),
    TopicPlan("loose", 2, {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}),
    TopicPlan("rescued", 1, {"min.insync.replicas": "1"}),
    TopicPlan("crowd", 40, {"min.insync.replicas": "2"}),
)
PASSING = "passing-"
"""So begin the names of topics that come and go by the dozen, and that nobody uses."""
OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 3
OF_GROUPS = TopicPlan(OFFSETS, OFFSETS_PARTITIONS, {"cleanup.policy": "compact"})
LOOSE = frozenset({"loose", "rescued"})
WITH_KEYS = frozenset({"compacted"})
FLUSHED = frozenset({"flushed"})
FLUSH_MS = ("0", "20", "100", "1000")
EXTRA_TOPICS = tuple(topic.name for topic in SOMETIMES)

HOUSEKEEPING = {
    "log.retention.check.interval.ms": "700",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "800",
    "log.flush.start.offset.checkpoint.interval.ms": "3000",
}
"""How often a broker looks after its logs. (Kafka's intervals are longer than a run.)"""


def topics_of(extra: Sequence[str], flush_ms: Mapping[str, str]) -> tuple[TopicPlan, ...]:
    topics = (*ALWAYS, *[topic for topic in SOMETIMES if topic.name in extra])
    return tuple(
        replace(topic, settings=topic.settings | {"flush.ms": flush_ms[topic.name]})
        if topic.name in flush_ms
        else topic
        for topic in topics
    )


def drawn_flush_ms(random: Random) -> dict[str, str]:
    """Of the topics that are flushed after a while: after how long."""
    return {topic.name: random.choice(FLUSH_MS) for topic in (*ALWAYS, *SOMETIMES) if random.random() < 0.25}
