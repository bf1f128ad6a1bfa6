"""Topics looked at: listed, described, and their placement as a table.

A broker is asked directly. librdkafka would create a topic when it is asked about one that is not there, and it does
not tell of brokers that are down.
"""

import argparse
from collections.abc import Mapping, Sequence

from klamm.cli.group_asking import Cluster, cluster_of
from klamm.cli.placement_table import OUT_OF_SYNC, cells, followers, headings, rows_of
from klamm.cli.saying import counted, print_json, say_result, table
from klamm.cli.topic_extents import Extents, extents_of, place_of, records_in
from klamm.escaping import one_line
from klamm.local.view import ClusterSeen, PartitionSeen
from klamm.local.words import without_acks_all

LONGEST_VALUE = 2_000
UNKNOWN = (None, None, None)

Settings = Mapping[str, str | None]


def list_all(options: argparse.Namespace) -> int:
    cluster = cluster_of(options)
    seen = cluster.seen()
    extents = extents_of(cluster, seen)
    listed = [_summary(name, partitions, extents) for name, partitions in _by_topic(seen).items()]
    if options.json:
        print_json(listed)
        return 0
    columns = ("topic", "partitions", "replicas", "offline", "under-replicated", "records")
    say_result(table(columns, [tuple(each.values()) for each in listed]) if listed else "no topics")
    return 0


def _summary(name: str, partitions: Sequence[PartitionSeen], extents: Extents) -> dict[str, object]:
    return {
        "topic": name,
        "partitions": len(partitions),
        "replicas": max((len(each.replicas) for each in partitions), default=0),
        "offline": sum(each.is_offline for each in partitions),
        "under_replicated": sum(each.is_under_replicated for each in partitions),
        "records": records_in(extents, partitions),
    }


def describe(options: argparse.Namespace) -> int:
    names = list(dict.fromkeys(options.name))
    cluster = cluster_of(options)
    seen = cluster.seen(names)
    topics, extents = _by_topic(seen), extents_of(cluster, seen)
    described = {name: (topics[name], _own_settings(cluster, name), extents) for name in names}
    if options.json:
        print_json([_topic_document(name, *described[name]) for name in names])
        return 0
    can_decide = not _is_undecided(seen)
    say_result("\n\n".join(_topic_text(name, *described[name], can_decide=can_decide) for name in names))
    _maybe_say_why_undecided(cluster, seen)
    return 0


def _own_settings(cluster: Cluster, name: str) -> Settings:
    """What was set for this topic, not what it inherits."""
    from klamm.cli.config_asking import OF_THE_TOPIC, TOPIC, Owner, settings_of

    settings = settings_of(cluster, Owner(TOPIC, name))
    return {each.name: each.value for each in settings if each.source == OF_THE_TOPIC}


def _topic_document(
    name: str, partitions: Sequence[PartitionSeen], settings: Settings, extents: Extents
) -> dict[str, object]:
    return {
        "topic": name,
        "config": dict(settings),
        "partitions": [
            {
                "partition": each.partition,
                "leader": None if each.is_offline else each.leader,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "first": extent.first if (extent := extents.get(place_of(each))) else None,
                "end": extent.end if extent else None,
            }
            for each in partitions
        ],
    }


def _topic_text(
    name: str, partitions: Sequence[PartitionSeen], settings: Settings, extents: Extents, *, can_decide: bool
) -> str:
    replicas = max(len(each.replicas) for each in partitions)
    lines = [f"topic {one_line(name)}: {counted(len(partitions), 'partition')}, {counted(replicas, 'replica')} each"]
    lines += [f"  {one_line(key)}={one_line(str(value), LONGEST_VALUE)}" for key, value in settings.items()]
    rows = [
        (
            each.partition,
            "none" if each.is_offline else each.leader,
            ", ".join(map(str, each.replicas)),
            ", ".join(map(str, each.in_sync)),
            *((extent.first, extent.end, extent.records) if (extent := extents.get(place_of(each))) else UNKNOWN),
        )
        for each in partitions
    ]
    lines.append(table(("partition", "leader", "replicas", "in sync", "first", "end", "records"), rows))
    below = " ".join(f"{each.partition}" for each in partitions if each.is_below_min_in_sync)
    return "\n".join([*lines, without_acks_all(below, can_decide=can_decide)] if below else lines)


def _is_undecided(seen: ClusterSeen) -> bool:
    return any(each.is_gone for each in seen.brokers)


def _maybe_say_why_undecided(cluster: Cluster, seen: ClusterSeen) -> None:
    if _is_undecided(seen) and (words := cluster.undecided()):
        say_result(f"\n{words}")


def placement(options: argparse.Namespace) -> int:
    cluster = cluster_of(options)
    seen = cluster.seen([options.name])
    rows = rows_of(seen)
    if options.json:
        print_json(_placement_document(options.name, seen))
        return 0
    roles = len(rows[0].roles)
    say_result(table(headings(roles), [cells(row) for row in rows], whole=headings(roles)))
    _maybe_say_why_undecided(cluster, seen)
    leaderless = [f"P{each.partition}" for each in seen.partitions if each.is_offline]
    if leaderless:
        say_result(f"\nno leader: {' '.join(leaderless)} (in parentheses: their first replica)")
    if any(each.is_under_replicated for each in seen.partitions):
        say_result(f"\n{OUT_OF_SYNC} not in sync")
    below = " ".join(f"P{each.partition}" for each in seen.partitions if each.is_below_min_in_sync)
    if below:
        say_result(without_acks_all(below, can_decide=not _is_undecided(seen)))
    return 0


def _placement_document(name: str, seen: ClusterSeen) -> dict[str, object]:
    return {
        "topic": name,
        "brokers": [
            {"id": row.broker.broker_id, "rack": row.broker.rack, "fenced": row.broker.is_fenced}
            for row in rows_of(seen)
        ],
        "partitions": [
            {
                "partition": each.partition,
                "leader": None if each.is_offline else each.leader,
                "followers": followers(each),
                "in_sync": list(each.in_sync),
            }
            for each in seen.partitions
        ],
    }


def _by_topic(seen: ClusterSeen) -> dict[str, list[PartitionSeen]]:
    topics: dict[str, list[PartitionSeen]] = {}
    for each in seen.partitions:
        topics.setdefault(each.topic, []).append(each)
    return topics
