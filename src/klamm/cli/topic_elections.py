"""Leaders elected because somebody asks for it: the preferred ones lead again, or one leads that may lack records.

The first of a partition's replicas is preferred. When it was away somebody else leads, and after it has caught up the
brokers give it back by themselves some seconds later; this does it now. An unclean election is for partitions that have
no leader because none of the replicas in sync is there.
"""

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from klamm.cli.changing import changing
from klamm.cli.group_asking import Cluster, Refused, by_topic, name_of
from klamm.cli.options import Misused
from klamm.cli.saying import FAILED, counted, print_json, say_result, table
from klamm.cli.topic_asking import chosen
from klamm.cli.topic_extents import place_of
from klamm.cli.topic_heard import partitions_once
from klamm.cli.topic_targets import listed
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.view import PartitionSeen
from klamm.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

ELECT_LEADERS = 43
PREFERRED, UNCLEAN = 0, 1
CHANGE_SECONDS, ANSWER_SECONDS = 30.0, 40.0
NAMED_PARTITIONS = 5

ELECTED, ALREADY, REFUSED = "elected", "already", "refused"

Said = Mapping[TopicPartition, tuple[int, str | None]]
"""Of each partition an error code, and maybe more."""


@dataclass(frozen=True, slots=True)
class Outcome:
    before: PartitionSeen
    now: PartitionSeen
    result: str
    why: str | None = None


def elect(options: argparse.Namespace) -> int:
    cluster = changing(options)
    names = list(dict.fromkeys(options.name))
    if options.partition and len(names) != 1:
        raise Misused("--partition is of one topic: say which")
    before = _wanted(cluster, names, options.partition)
    kind = UNCLEAN if options.unclean else PREFERRED
    asked = [each for each in before.values() if kind == PREFERRED or each.is_offline]
    if kind == UNCLEAN and asked and not options.force:
        raise Refused(_warning(asked))
    said = _asked(cluster, kind, [place_of(each) for each in asked])
    now = _seen_after(cluster, names, before, {place for place, (code, _) in said.items() if not code}, kind)
    outcomes = [
        _outcome(each, now.get(place, each), *said.get(place, (ErrorCode.ELECTION_NOT_NEEDED, None)))
        for place, each in before.items()
    ]
    if options.json:
        print_json([_document(each) for each in outcomes])
    else:
        say_result(_text(outcomes, kind, is_all_told=bool(names)))
    return FAILED if any(each.result == REFUSED for each in outcomes) else 0


def _wanted(
    cluster: Cluster, names: Sequence[str], partitions: "list[int] | None"
) -> dict[TopicPartition, PartitionSeen]:
    there = {place_of(each): each for each in cluster.seen(names or None).partitions}
    if partitions:
        numbers = set(chosen(names[0], [each.partition for each in there], partitions))
        there = {place: each for place, each in there.items() if place.partition in numbers}
    return there


def _warning(leaderless: Sequence[PartitionSeen]) -> str:
    named = ", ".join(str(place_of(each)) for each in leaderless[:NAMED_PARTITIONS])
    more = len(leaderless) - NAMED_PARTITIONS
    return (
        f"{named}{f' and {more} more' if more > 0 else ''} would be led by a replica that was not in sync: what it "
        "lacks is lost for good, acknowledged or not, also when those who hold it come back. Nothing was elected. "
        "If a replica in sync can be started again, start it instead; --force elects all the same"
    )


def _asked(cluster: Cluster, kind: int, places: Sequence[TopicPartition]) -> Said:
    if not places:
        return {}
    topics = [TopicPartitions(topic, partitions) for topic, partitions in by_topic(places).items()]
    request = ElectLeadersRequest(kind, topics, timeout_ms=int(CHANGE_SECONDS * 1_000))
    answer = cluster.ask_once(ELECT_LEADERS, 2, request, ANSWER_SECONDS)
    if answer.error_code:
        raise Refused(f"nobody was elected: {name_of(answer.error_code)}")
    return {
        TopicPartition(topic.topic, each.partition_id): (each.error_code, each.error_message)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def _seen_after(
    cluster: Cluster,
    names: Sequence[str],
    before: Mapping[TopicPartition, PartitionSeen],
    elected: Collection[TopicPartition],
    kind: int,
) -> Mapping[TopicPartition, PartitionSeen]:
    """Who leads now."""
    if not elected:
        return before
    return partitions_once(
        cluster,
        names,
        lambda now: all(place in now and _is_heard(now[place], kind) for place in elected),
    )


def _is_heard(partition: PartitionSeen, kind: int) -> bool:
    return partition.leader == partition.replicas[0] if kind == PREFERRED else not partition.is_offline


def _outcome(before: PartitionSeen, now: PartitionSeen, code: int, message: str | None) -> Outcome:
    if code == ErrorCode.NONE:
        return Outcome(before, now, ELECTED)
    if code == ErrorCode.ELECTION_NOT_NEEDED:
        return Outcome(before, now, ALREADY)
    return Outcome(before, now, REFUSED, _why(before, code, message))


def _why(partition: PartitionSeen, code: int, message: str | None) -> str:
    if code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
        return f"broker {partition.replicas[0]} is preferred, and is not in sync"
    if code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE:
        return f"none of its replicas is there: {listed(partition.replicas)}"
    return message or name_of(code)


def _text(outcomes: Sequence[Outcome], kind: int, *, is_all_told: bool) -> str:
    """Of topics that were named all partitions, of all topics those that something is to be said about."""
    already = "is the preferred one already" if kind == PREFERRED else "has a leader"
    told = [each for each in outcomes if is_all_told or each.result != ALREADY]
    if not told:
        well = "are led by their preferred replicas" if kind == PREFERRED else "have a leader"
        return f"nobody to elect: {counted(len(outcomes), 'partition')} {well}" if outcomes else "no topics"
    rows = [
        (
            *place_of(each.before),
            _leader(each.now),
            _leader(each.before),
            {ELECTED: ELECTED, ALREADY: already}.get(each.result) or f"not elected: {each.why}",
        )
        for each in told
    ]
    return table(("topic", "partition", "leader", "before", "outcome"), rows)


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "topic": outcome.before.topic,
        "partition": outcome.before.partition,
        "leader": _leader(outcome.now),
        "before": _leader(outcome.before),
        "preferred": outcome.now.replicas[0],
        "outcome": outcome.result,
        "why": outcome.why,
    }


def _leader(partition: PartitionSeen) -> int | None:
    return None if partition.is_offline else partition.leader
