"""Groups looked at: listed, and described with their lag, partition by partition."""

import argparse
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from klamm.cli.group_asking import (
    COORDINATOR_MOVING,
    EARLIEST,
    LATEST,
    PAUSE_SECONDS,
    Cluster,
    by_topic,
    cluster_of,
    name_of,
)
from klamm.cli.group_seen import (
    CLASSIC,
    CONSUMER,
    GroupSeen,
    MemberSeen,
    committed_offsets,
    describe_classic,
    describe_consumer,
    groups_seen,
)
from klamm.cli.options import Misused
from klamm.cli.saying import counted, failed, print_json, say_result, table
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.escaping import one_line
from klamm.ids import NO_BROKER, TopicPartition
from klamm.local.asking import Conversation, NoAnswer
from klamm.wire.messages.list_groups import ListedGroup, ListGroupsRequest

LIST_GROUPS = 16
MOMENT_SECONDS = 3.0
"""Groups that are missing are a failure, and one broker may have most of them to tell of."""
STATES = ("Empty", "Assigning", "Reconciling", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")


def list_all(options: argparse.Namespace) -> int:
    """Every broker tells of the groups it coordinates. One that does not answer is named, the others are shown."""
    states = [state_of(text) for text in options.state]
    types = [options.type] if options.type else []
    listed, code = _listed("group list", cluster_of(options), states, types)
    if options.json:
        print_json(listed)
    elif listed:
        rows = [tuple(each.values()) for each in listed]
        say_result(table(("group", "type", "state", "members", "coordinator"), rows))
    elif not code:
        say_result("no groups")
    return code


def state_of(text: str) -> str:
    """One of Kafka's names, however it is capitalised."""
    known = {each.lower(): each for each in STATES}
    if text.lower() not in known:
        near = get_close_matches(text.lower(), known, n=1)
        hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(STATES)}"
        raise Misused(f"--state {text}: there is no such state; {hint}")
    return known[text.lower()]


def _listed(
    command: str, cluster: Cluster, states: Sequence[str], types: Sequence[str]
) -> tuple[list[dict[str, object]], int]:
    """Groups in the order of their names, and the exit code: who leads none of the groups' partitions misses none."""
    found: dict[str, dict[str, object]] = {}
    code = 0
    # A group is coordinated by the leader of its partition of this topic.
    leaders = set(cluster.leaders([CONSUMER_OFFSETS]).values())
    if NO_BROKER in leaders:
        code = failed(command, f"groups are missing: not every partition of {CONSUMER_OFFSETS} has a leader")
    for broker_id, answer in sorted(_told_by_each(cluster, ListGroupsRequest(list(states), list(types))).items()):
        if not isinstance(answer, str):
            found |= {str(each["group"]): {**each, "coordinator": broker_id} for each in answer}
        elif broker_id in leaders:
            code = failed(command, f"the groups of broker {broker_id} are missing: {answer}")
    return [found[group] for group in sorted(found)], code


def _told_by_each(cluster: Cluster, request: ListGroupsRequest) -> dict[int, list[dict[str, object]] | str]:
    """The groups of every broker, or why it does not tell. One that is still reading them is asked again."""
    began = time.monotonic()
    told: dict[int, list[dict[str, object]] | str] = {}
    waiting = cluster.brokers()
    while waiting:
        heard = cluster.of_brokers(
            waiting, lambda _, broker: _groups_of(broker, request), moment_seconds=MOMENT_SECONDS
        )
        for broker_id, answer in heard.items():
            if isinstance(answer, NoAnswer):
                told[broker_id] = str(answer)
            elif not answer.code:
                told[broker_id] = answer.groups
            elif answer.code not in COORDINATOR_MOVING or time.monotonic() > began + cluster.patience_seconds():
                told[broker_id] = f"{waiting[broker_id]}: {name_of(answer.code)}"
        waiting = {broker_id: address for broker_id, address in waiting.items() if broker_id not in told}
        if waiting:
            time.sleep(PAUSE_SECONDS)
    return told


class _GroupsSaid(NamedTuple):
    """What a broker said: its error code, or its groups."""

    code: int
    groups: list[dict[str, object]]


def _groups_of(broker: Conversation, request: ListGroupsRequest) -> _GroupsSaid:
    answer = broker.ask(LIST_GROUPS, 5, request)
    if answer.error_code:
        return _GroupsSaid(answer.error_code, [])
    members = _member_counts(broker, answer.groups)
    groups = [
        {
            "group": each.group_id,
            "type": each.group_type.lower(),
            "state": each.group_state,
            "members": members.get(each.group_id),
        }
        for each in answer.groups
    ]
    return _GroupsSaid(0, groups)


def _member_counts(broker: Conversation, groups: Iterable[ListedGroup]) -> dict[str, int]:
    """Two more questions, however many groups there are. Kinds of groups that we cannot describe have no count."""
    kinds: dict[str, list[str]] = {}
    for group in groups:
        kinds.setdefault(group.group_type.lower(), []).append(group.group_id)
    counts: dict[str, int] = {}
    if consumer := kinds.get(CONSUMER):
        told = describe_consumer(broker, consumer)
        counts |= {group: len(each.members) for group, (code, each) in told.items() if not code}
    if classic := kinds.get(CLASSIC):
        told_classic = describe_classic(broker, classic)
        counts |= {group: len(each.members) for group, (code, each) in told_classic.items() if not code}
    return counts


@dataclass(frozen=True, slots=True)
class Reading:
    """One partition of a group: how far it has read, how far it could, and who does it."""

    partition: TopicPartition
    committed: int | None
    log_end: int | None
    owner: MemberSeen | None
    log_start: int | None = None

    @property
    def unread(self) -> int | None:
        """Records of a partition in which the group has committed nothing."""
        if self.committed is not None or self.log_end is None or self.log_start is None:
            return None
        return self.log_end - self.log_start

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.log_end is None else self.log_end - self.committed


def describe(options: argparse.Namespace) -> int:
    if bool(options.group) == options.all:
        raise Misused("say which groups, or --all")
    cluster = cluster_of(options)
    names, code = list(dict.fromkeys(options.group)), 0
    if options.all:
        listed, code = _listed("group describe", cluster, [], [CLASSIC, CONSUMER])
        names = [str(each["group"]) for each in listed]
    seen = groups_seen(cluster, names)
    for group in options.group:
        if seen[group] is None:
            code = failed("group describe", unknown(group))
    there = [each for each in seen.values() if each is not None]
    readings = _readings(cluster, there)
    if options.json:
        print_json([_document(each, readings[each.group]) for each in there])
    elif there:
        say_result("\n\n".join(described(each, readings[each.group], options.members) for each in there))
    elif not code:
        say_result("no groups")
    return code


def unknown(group: str) -> str:
    return f"there is no consumer group {group!r}; `klamm group list` lists them"


def _readings(cluster: Cluster, groups: Sequence[GroupSeen]) -> dict[str, list[Reading]]:
    """Of every topic that a group reads all partitions, committed or not. Committed offsets first and ends after them,
    so that no group seems to be ahead of its topic."""
    committed = committed_offsets(cluster, [each.group for each in groups])
    known = {each.group: {*committed[each.group], *each.owners} for each in groups}
    there = cluster.leaders({each.topic for partitions in known.values() for each in partitions})
    read = {group: partitions | _of_the_same_topics(partitions, there) for group, partitions in known.items()}
    ends = cluster.offsets_at({each for partitions in read.values() for each in partitions}, LATEST)
    never = {each for group, partitions in read.items() for each in partitions - committed[group].keys()}
    starts = cluster.offsets_at(never & ends.keys(), EARLIEST)
    return {
        each.group: [
            Reading(place, committed[each.group].get(place), ends.get(place), each.owners.get(place), starts.get(place))
            for place in sorted(read[each.group])
        ]
        for each in groups
    }


def _of_the_same_topics(
    partitions: Collection[TopicPartition], there: Collection[TopicPartition]
) -> set[TopicPartition]:
    topics = {each.topic for each in partitions}
    return {each for each in there if each.topic in topics}


def described(group: GroupSeen, readings: Sequence[Reading], with_members: bool) -> str:
    """What stands in a column of dashes is not known: no offset committed, no leader, nobody who reads it."""
    lines = [headline(group, readings)]
    if readings:
        rows = [(*each.partition, each.committed, each.log_end, each.lag, *_who(each.owner)) for each in readings]
        lines.append(table(("topic", "partition", "committed", "log end", "lag", "member", "client", "host"), rows))
    if with_members and group.members:
        lines += ["", _members_table(group)]
    return "\n".join(lines)


def headline(group: GroupSeen, readings: Sequence[Reading]) -> str:
    facts = [group.state, f"{group.kind} protocol"]
    if group.protocol_type not in ("", "consumer"):
        facts.append(f"of {group.protocol_type}")
    if group.assignor:
        facts.append(f"assignor {group.assignor}")
    facts += [counted(len(group.members), "member"), f"coordinator {group.coordinator}"]
    if readings:
        facts.append(_total_lag(readings))
    return f"group {one_line(group.group)}: {', '.join(map(one_line, facts))}"


def _total_lag(readings: Sequence[Reading]) -> str:
    """And what it leaves out: where the group begins in a partition in which it committed nothing, only its members
    know."""
    lag = _sum(each.lag for each in readings)
    left_out = [each.unread for each in readings if each.lag is None]
    if not left_out:
        return f"total lag {lag}"
    unread = _sum(left_out)
    records = "" if unread is None else f", with {counted(unread, 'record')}{' or more' if None in left_out else ''}"
    return f"total lag {'-' if lag is None else lag} ({counted(len(left_out), 'partition')} not counted{records})"


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


def _who(owner: MemberSeen | None) -> tuple[str | None, str | None, str | None]:
    return (owner.member_id, owner.client_id, owner.host) if owner else (None, None, None)


def _members_table(group: GroupSeen) -> str:
    """Columns that say something: epochs and protocols where there are several, what moves while it moves."""
    columns: list[tuple[str, list[object]]] = [
        ("member", [each.member_id for each in group.members]),
        ("instance", [each.instance_id for each in group.members]),
        ("client", [each.client_id for each in group.members]),
        ("host", [each.host for each in group.members]),
        ("protocol", [each.protocol for each in group.members]),
        ("epoch", [each.epoch for each in group.members]),
        ("owns", [owned(each.owns) for each in group.members]),
    ]
    if any(each.owns != each.shall_own for each in group.members):
        columns.append(("shall own", [owned(each.shall_own) for each in group.members]))
    shown = [column for column in columns if any(cell is not None for cell in column[1])]
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    return table([heading for heading, _ in shown], rows, whole=("owns", "shall own"))


def owned(partitions: Iterable[TopicPartition]) -> str:
    """`invoice: 0 1, orders: 2`"""
    topics = by_topic(partitions)
    return ", ".join(f"{topic}: {' '.join(map(str, numbers))}" for topic, numbers in topics.items()) or "nothing"


def _document(group: GroupSeen, readings: Sequence[Reading]) -> dict[str, object]:
    left_out = [each for each in readings if each.lag is None]
    return {
        "group": group.group,
        "type": group.kind,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "epoch": group.epoch,
        "coordinator": {"id": group.coordinator.broker_id, **group.coordinator.address._asdict()},
        "lag": _sum(each.lag for each in readings),
        "not_counted": {"partitions": len(left_out), "records": _sum(each.unread for each in left_out)},
        "partitions": [_reading_document(each) for each in readings],
        "members": [_member_document(each) for each in group.members],
    }


def _reading_document(reading: Reading) -> dict[str, object]:
    member, client, host = _who(reading.owner)
    return {
        "topic": reading.partition.topic,
        "partition": reading.partition.partition,
        "committed": reading.committed,
        "log_end": reading.log_end,
        "lag": reading.lag,
        "member": member,
        "client": client,
        "host": host,
    }


def _member_document(member: MemberSeen) -> dict[str, object]:
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "client": member.client_id,
        "host": member.host,
        "protocol": member.protocol,
        "epoch": member.epoch,
        "owns": by_topic(member.owns),
        "shall_own": by_topic(member.shall_own),
    }
