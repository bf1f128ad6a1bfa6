"""Groups deleted, and some of their offsets. A group that is in use is left alone, and its members are named."""

import argparse
from collections.abc import Sequence

from klamm.cli.group_asking import Cluster, Refused, by_topic, cluster_of, name_of
from klamm.cli.group_seen import GroupSeen, committed_offsets, groups_seen
from klamm.cli.group_views import unknown
from klamm.cli.options import Misused
from klamm.cli.reset_targets import chosen_partitions, listed
from klamm.cli.saying import FAILED, counted, failed, print_json, say_result, table
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import Conversation
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

DELETE_GROUPS, OFFSET_DELETE = 42, 47
NAMED_MEMBERS = 3


def delete(options: argparse.Namespace) -> int:
    """Each on its own: one may be refused and the others done."""
    cluster = cluster_of(options)
    seen = groups_seen(cluster, list(dict.fromkeys(options.group)))
    problems = {group: problem for group, each in seen.items() if (problem := _not_deletable(group, each))}
    answers = cluster.of_groups([group for group in seen if group not in problems], _delete_groups)
    for group, answer in answers.items():
        # We saw it a moment ago. Where it is not there now, an attempt that was not answered has deleted it.
        if answer.code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            problems[group] = _deletion_problem(group, answer.code)
    deleted = [group for group in seen if group not in problems]
    for problem in problems.values():
        failed("group delete", problem)
    if options.json:
        print_json({"deleted": deleted})
    elif deleted:
        say_result("\n".join(f"group {group} deleted" for group in deleted))
    return FAILED if problems else 0


def in_use(group: GroupSeen) -> str:
    """Who is in it, and what to do."""
    named = [f"{each.client_id} at {each.host}" for each in group.members[:NAMED_MEMBERS]]
    more = len(group.members) - len(named)
    who = ", ".join(named) + (f" and {more} more" if more else "")
    return (
        f"group {group.group!r} is in use: {counted(len(group.members), 'member')} ({who}); "
        f"stop them first (`klamm group describe {group.group} --members` shows them). "
        "Static members, and members that died, are out when their session timeout has passed"
    )


def _not_deletable(group: str, seen: GroupSeen | None) -> str | None:
    if seen is None:
        return unknown(group)
    return in_use(seen) if seen.members else None


def _delete_groups(broker: Conversation, groups: Sequence[str]) -> dict[str, tuple[int, None]]:
    answer = broker.ask(DELETE_GROUPS, 2, DeleteGroupsRequest(list(groups)))
    return {each.group_id: (each.error_code, None) for each in answer.results}


def _deletion_problem(group: str, code: int) -> str:
    if code == ErrorCode.NON_EMPTY_GROUP:
        return f"group {group!r} is in use: somebody has joined it just now"
    return f"group {group!r}: {name_of(code)}"


def delete_offsets(options: argparse.Namespace) -> int:
    if not options.topic:
        raise Misused("say which offsets: --topic TOPIC or --topic TOPIC:PARTITION,…")
    cluster = cluster_of(options)
    group = options.group
    committed = committed_offsets(cluster, [group])[group]
    if not committed and groups_seen(cluster, [group])[group] is None:
        raise Refused(unknown(group))
    partitions = _committed_of(group, committed, options.topic)
    codes = _deleted(cluster, group, partitions)
    deleted = [each for each in partitions if not codes[each]]
    for topic in sorted({each.topic for each in partitions if codes[each]}):
        code = next(codes[each] for each in partitions if each.topic == topic and codes[each])
        failed("group delete-offsets", _offsets_problem(cluster, group, topic, code))
    if options.json:
        rows = [{"topic": each.topic, "partition": each.partition, "committed": committed[each]} for each in deleted]
        print_json({"group": group, "deleted": rows})
    elif deleted:
        say_result(table(("topic", "partition", "deleted offset"), [(*each, committed[each]) for each in deleted]))
    return FAILED if len(deleted) < len(partitions) else 0


def _committed_of(group: str, committed: dict[TopicPartition, int], texts: Sequence[str]) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for topic, numbers in chosen_partitions("--topic", texts).items():
        if numbers is None:
            its_own = [each for each in committed if each.topic == topic]
            if not its_own:
                raise Refused(f"group {group!r} has committed no offsets of topic {topic}")
            found += its_own
        else:
            found += [TopicPartition(topic, number) for number in numbers]
    without = sorted(set(found) - committed.keys())
    if without:
        raise Refused(f"group {group!r} has committed no offsets of {listed(without)}; nothing was deleted")
    return sorted(found)


def _deleted(cluster: Cluster, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The error code of each; a group that is refused as a whole is refused for each of them."""

    def ask(broker: Conversation, groups: Sequence[str]) -> dict[str, tuple[int, dict[TopicPartition, int]]]:
        topics = [
            OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(number) for number in numbers])
            for topic, numbers in by_topic(partitions).items()
        ]
        answer = broker.ask(OFFSET_DELETE, 0, OffsetDeleteRequest(group, topics))
        codes = {
            TopicPartition(topic.name, each.partition_index): each.error_code
            for topic in answer.topics
            for each in topic.partitions
        }
        return {group: (answer.error_code, codes)}

    answer = cluster.of_group(group, ask)
    if answer.code:
        return dict.fromkeys(partitions, answer.code)
    return {each: answer.value.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in partitions}


def _offsets_problem(cluster: Cluster, group: str, topic: str, code: int) -> str:
    if code in (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NON_EMPTY_GROUP):
        seen = groups_seen(cluster, [group])[group]
        if seen is not None and seen.members:
            return f"the offsets of {topic} are being used: {in_use(seen)}"
    return f"the offsets of {topic}: {name_of(code)}"
