"""The groups that this broker coordinates, under the names of kafka_exporter.

Where a group stands is known to its coordinator, where a partition ends to those that hold it. So the lag is told where
both are known; for the other partitions it is a subtraction of two series (docs/metrics.md shows it).
"""

from collections.abc import Iterator
from typing import NamedTuple

from klamm.runtime.metrics.family import GAUGE, Sample, Seen, family, labelled, one

PLACE = ("consumergroup", "topic", "partition")


class Position(NamedTuple):
    group_id: str
    topic: str
    partition: int
    offset: int


@one("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, "Groups that this broker coordinates.")
def group_count(seen: Seen) -> float:
    return sum(shard.group_count for shard in seen.broker.coordination.shards())


@one("klamm_group_members_bytes", GAUGE, "What the members of these groups take of its memory, about.")
def members_bytes(seen: Seen) -> float:
    return sum(shard.memory.used_bytes for shard in seen.broker.coordination.shards())


@one("klamm_group_joins_refused", GAUGE, "Members of these groups that there was no room for.")
def joins_refused(seen: Seen) -> float:
    return sum(shard.memory.refused for shard in seen.broker.coordination.shards())


@family("kafka_consumergroup_members", GAUGE, "Members of a group.", "consumergroup")
def members(seen: Seen) -> Iterator[Sample]:
    for shard in seen.broker.coordination.shards():
        for group_id in shard.group_ids:
            yield labelled({"consumergroup": group_id}, shard.member_count(group_id))


@family("kafka_consumergroup_current_offset", GAUGE, "The offset that a group has committed.", *PLACE)
def positions(seen: Seen) -> Iterator[Sample | None]:
    for position in _positions(seen):
        yield None if position is None else _placed(position, position.offset)


@family(
    "kafka_consumergroup_lag",
    GAUGE,
    "Records that a group has not read, of the partitions that this broker holds.",
    *PLACE,
)
def lag(seen: Seen) -> Iterator[Sample | None]:
    for position in _positions(seen):
        held = None if position is None else seen.broker.partitions.get(position.topic, position.partition)
        if position is None or held is None:
            yield None
        else:
            yield _placed(position, max(0, held.high_watermark - position.offset))


def _positions(seen: Seen) -> Iterator[Position | None]:
    """None for a group that has committed nothing."""
    for shard in seen.broker.coordination.shards():
        for group_id in shard.group_ids:
            found = shard.positions_of(group_id)
            if not found:
                yield None
            for (topic, partition), offset in found:
                yield Position(group_id, topic, partition, offset)


def _placed(position: Position, value: float) -> Sample:
    group_id, topic, partition, _ = position
    return labelled({"consumergroup": group_id, "topic": topic, "partition": partition}, value)
