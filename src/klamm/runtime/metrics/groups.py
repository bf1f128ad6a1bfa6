"""The groups that this broker coordinates, under the names of kafka_exporter.

Where a group stands is known to its coordinator, where a partition ends to those that hold it. So the lag is told where
both are known; for the other partitions it is a subtraction of two series (docs/metrics.md shows it).
"""

from collections.abc import Iterator

from klamm.runtime.metrics.family import GAUGE, Sample, Seen, family, labelled, one

PLACE = ("consumergroup", "topic", "partition")


@one("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, "Groups that this broker coordinates.")
def group_count(seen: Seen) -> float:
    return sum(len(shard.group_ids) for shard in seen.broker.coordination.shards())


@family("kafka_consumergroup_members", GAUGE, "Members of a group.", "consumergroup")
def members(seen: Seen) -> Iterator[Sample]:
    for shard in seen.broker.coordination.shards():
        for group_id in shard.group_ids:
            yield labelled({"consumergroup": group_id}, shard.member_count(group_id))


@family("kafka_consumergroup_current_offset", GAUGE, "The offset that a group has committed.", *PLACE)
def positions(seen: Seen) -> Iterator[Sample]:
    for group_id, topic, partition, offset in _positions(seen):
        yield labelled({"consumergroup": group_id, "topic": topic, "partition": partition}, offset)


@family(
    "kafka_consumergroup_lag",
    GAUGE,
    "Records that a group has not read, of the partitions that this broker holds.",
    *PLACE,
)
def lag(seen: Seen) -> Iterator[Sample]:
    for group_id, topic, partition, offset in _positions(seen):
        held = seen.broker.partitions.get(topic, partition)
        if held is not None:
            behind = max(0, held.high_watermark - offset)
            yield labelled({"consumergroup": group_id, "topic": topic, "partition": partition}, behind)


def _positions(seen: Seen) -> Iterator[tuple[str, str, int, int]]:
    for shard in seen.broker.coordination.shards():
        for group_id in shard.group_ids:
            for (topic, partition), offset in shard.positions_of(group_id):
                yield group_id, topic, partition, offset
