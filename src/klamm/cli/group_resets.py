"""`klamm group reset-offsets`: a group that nobody is in is sent to other offsets.

First it is shown what would change, and nothing does; with --execute it is committed, as by a consumer outside of any
generation. The coordinator takes that only while the group is empty, so members that run are never pulled away.
"""

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from klamm.cli.group_asking import COORDINATOR_MOVING, EARLIEST, LATEST, Cluster, Refused, by_topic, cluster_of, name_of
from klamm.cli.group_changes import in_use
from klamm.cli.group_seen import committed_offsets, groups_seen
from klamm.cli.options import Misused
from klamm.cli.reset_targets import (
    Move,
    chosen_partitions,
    csv_of,
    duration_ms_of,
    listed,
    moves,
    plan_of,
    shifted,
    time_ms_of,
    warnings,
)
from klamm.cli.saying import FAILED, counted, failed, print_json, say, say_result, table
from klamm.cli.topic_asking import no_topic
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import Conversation
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

OFFSET_COMMIT = 8


def reset_offsets(options: argparse.Namespace) -> int:
    if options.json and options.export:
        raise Misused("--json and --export are two ways to print the same; choose one")
    plan = _plan_in_file(options)
    scope = chosen_partitions("--topic", options.topic)
    time_ms = _time_asked_for(options)
    cluster = cluster_of(options)
    _check_that_nobody_is_in_it(cluster, options)
    committed = committed_offsets(cluster, [options.group])[options.group]
    partitions = _partitions(cluster, options.group, scope, plan, committed)
    planned = _planned(options, cluster, partitions, plan, time_ms, committed)
    for warning in warnings(planned):
        say(f"klamm group reset-offsets: {warning}")
    codes = _committed(cluster, options.group, planned) if options.execute else {}
    return _said(options, planned, codes)


def _plan_in_file(options: argparse.Namespace) -> dict[TopicPartition, int] | None:
    has_scope = bool(options.topic) or options.all_topics
    if options.from_file is None:
        if not has_scope:
            raise Misused("say which partitions: --topic TOPIC, --topic TOPIC:PARTITION,… or --all-topics")
        return None
    if has_scope:
        raise Misused("--from-file says itself which partitions; leave --topic and --all-topics out")
    try:
        lines = Path(options.from_file).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise Misused(f"--from-file {options.from_file}: {getattr(problem, 'strerror', None) or problem}") from None
    return plan_of(options.group, lines, options.from_file)


def _time_asked_for(options: argparse.Namespace) -> int | None:
    """Never negative: such times have meanings of their own in the protocol."""
    if options.to_datetime is not None:
        return max(0, time_ms_of(options.to_datetime))
    if options.by_duration is not None:
        return max(0, int(time.time() * 1000) - duration_ms_of(options.by_duration))
    return None


def _check_that_nobody_is_in_it(cluster: Cluster, options: argparse.Namespace) -> None:
    seen = groups_seen(cluster, [options.group])[options.group]
    if seen is None:
        say(f"klamm group reset-offsets: there is no group {options.group!r} yet; committing offsets makes it")
    elif seen.members:
        raise Refused(in_use(seen))


def _partitions(
    cluster: Cluster,
    group: str,
    scope: Mapping[str, set[int] | None],
    plan: Mapping[TopicPartition, int] | None,
    committed: Mapping[TopicPartition, int],
) -> list[TopicPartition]:
    """Those that were named, or that the group has read; each of them is there."""
    if plan is not None:
        wanted: set[TopicPartition] = set(plan)
        there = cluster.leaders(each.topic for each in wanted)
    elif scope:
        there = cluster.leaders(scope)
        wanted = {TopicPartition(topic, number) for topic, numbers in scope.items() for number in numbers or ()}
        wanted |= {each for each in there if scope[each.topic] is None}
    else:
        wanted = set(committed)
        there = cluster.leaders(each.topic for each in wanted)
    topics_there = {each.topic for each in there}
    for topic in [*scope, *(each.topic for each in sorted(wanted))]:
        if topic not in topics_there:
            raise no_topic(cluster, topic)
    if not wanted:
        raise Refused(f"group {group!r} has committed no offsets yet; say --topic instead of --all-topics")
    missing = sorted(wanted - there.keys())
    if missing:
        raise Refused(f"there is no partition {listed(missing)}; `klamm topic describe {missing[0].topic}` lists them")
    return sorted(wanted)


def _planned(
    options: argparse.Namespace,
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    plan: Mapping[TopicPartition, int] | None,
    time_ms: int | None,
    committed: Mapping[TopicPartition, int],
) -> list[Move]:
    starts = _offsets(cluster, partitions, EARLIEST)
    ends = _offsets(cluster, partitions, LATEST)
    if options.to_current:
        # As it is, also where retention has overtaken it: this is the target that changes nothing.
        current = {each: committed.get(each, ends[each]) for each in partitions}
        return [Move(each, committed.get(each), offset, offset) for each, offset in sorted(current.items())]
    if plan is not None:
        wanted = dict(plan)
    elif options.to_earliest:
        wanted = starts
    elif options.to_latest:
        wanted = ends
    elif options.to_offset is not None:
        wanted = dict.fromkeys(partitions, options.to_offset)
    elif options.shift_by is not None:
        wanted = shifted(partitions, committed, options.shift_by)
    else:
        assert time_ms is not None
        found = _offsets(cluster, partitions, time_ms)
        # No record is so young: whoever starts there reads what comes next.
        wanted = {each: ends[each] if offset < 0 else offset for each, offset in found.items()}
    return moves(wanted, committed, starts, ends)


def _offsets(cluster: Cluster, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
    found = cluster.offsets_at(partitions, time_ms)
    without = sorted(set(partitions) - found.keys())
    if without:
        raise Refused(f"no leader tells the offsets of {listed(without)}; `klamm topic describe` shows who leads")
    return found


def _committed(cluster: Cluster, group: str, planned: Sequence[Move]) -> dict[TopicPartition, int]:
    """The error code of each."""
    after = {each.partition: each.after for each in planned}

    def ask(broker: Conversation, groups: Sequence[str]) -> dict[str, tuple[int, dict[TopicPartition, int]]]:
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(number, after[TopicPartition(topic, number)], committed_metadata="")
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(after).items()
        ]
        request = OffsetCommitRequest(group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        answer = broker.ask(OFFSET_COMMIT, 9, request)
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        # A coordinator that moves says so partition by partition; the whole is tried again.
        return {group: (next((code for code in codes.values() if code in COORDINATOR_MOVING), 0), codes)}

    said = cluster.of_group(group, ask).value
    return {each: said.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in after}


def _said(options: argparse.Namespace, planned: Sequence[Move], codes: Mapping[TopicPartition, int]) -> int:
    refused = [each for each in planned if codes.get(each.partition)]
    shown = [each for each in planned if not codes.get(each.partition)]
    for code in sorted({codes[each.partition] for each in refused}):
        which = listed([each.partition for each in refused if codes[each.partition] == code])
        failed("group reset-offsets", _commit_problem(options.group, code, which))
    if options.json:
        print_json({"group": options.group, "executed": options.execute, "partitions": list(map(_document, shown))})
    elif options.export:
        say_result(csv_of(shown))
    elif shown:
        rows = [(*each.partition, each.before, each.after, each.change) for each in shown]
        say_result(table(("topic", "partition", "from", "to", "change"), rows))
    if options.execute and shown:
        say(f"group {options.group}: {counted(len(shown), 'offset')} committed")
    elif not options.execute and not options.export:
        say("nothing is changed yet; the same with --execute does it")
    return FAILED if refused else 0


def _commit_problem(group: str, code: int, which: str) -> str:
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        return f"{which} not changed: somebody has joined group {group!r} just now; stop the members and try again"
    return f"{which} not changed: {name_of(code)}"


def _document(move: Move) -> dict[str, object]:
    return {
        "topic": move.partition.topic,
        "partition": move.partition.partition,
        "from": move.before,
        "to": move.after,
        "wanted": move.wanted,
    }
