"""Partitions move to other brokers: wished for, watched to the end, taken back, or listed while they do.

The new replicas are added and copy; when they are in sync the others are removed, and clients notice next to nothing.
Until then everything can be taken back. The brokers do it by themselves: whoever watches only watches.
"""

import argparse
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from klamm.cli.changing import changing
from klamm.cli.group_asking import PATIENCE_SECONDS, Cluster, Refused, cluster_of, name_of
from klamm.cli.options import Misused
from klamm.cli.progress import Progress
from klamm.cli.saying import FAILED, counted, failed, print_json, say, say_result, table
from klamm.cli.topic_asking import chosen
from klamm.cli.topic_extents import place_of
from klamm.cli.topic_heard import partitions_once
from klamm.cli.topic_targets import Held, check_known, listed, outright, spread
from klamm.controller.placement import Replicas
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import NoAnswer
from klamm.local.view import ClusterSeen, UnknownTopic
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from klamm.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS = 45, 46
CHANGE_SECONDS, ANSWER_SECONDS = 30.0, 40.0
WATCH_SECONDS = 0.2

MOVED, MOVING, STAYS, TAKEN_BACK, REFUSED = "moved", "moving", "stays", "taken back", "refused"


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A partition that moves: all its replicas, those that are being added, those that will go."""

    replicas: Replicas
    adding: Replicas
    removing: Replicas

    @property
    def origin(self) -> Replicas:
        """Where it is again if the move is taken back."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> Replicas:
        return tuple(broker for broker in self.replicas if broker not in self.removing)


def move(options: argparse.Namespace) -> int:
    if options.replication is not None and not options.to:
        raise Misused("--replication goes with --to")
    if options.cancel and options.no_wait:
        raise Misused("--cancel is done at once: there is nothing to wait for")
    cluster, topic = changing(options), options.name
    # All topics: what others have where decides about where this one is spread.
    seen = cluster.seen(None if options.to else [topic])
    replicas = {each.partition: each.replicas for each in seen.partitions if each.topic == topic}
    if not replicas:
        raise UnknownTopic(topic)
    moving = under_way(cluster, [topic])
    held = {
        number: moving[place].origin if (place := TopicPartition(topic, number)) in moving else replicas[number]
        for number in chosen(topic, replicas, options.partition)
    }
    if options.cancel:
        return _taken_back(options, cluster, moving, held)
    targets = _targets(options, seen, held)
    wishes = {
        number: target
        for number, target in targets.items()
        if target != held[number] or TopicPartition(topic, number) in moving
    }
    problems = _wished(cluster, topic, wishes)
    begun = {number: target for number, target in wishes.items() if number not in problems}
    state, after = (MOVING, begun) if options.no_wait else (MOVED, _arrived(cluster, topic, begun, options.timeout))
    problems |= {
        number: f"it was sent elsewhere meanwhile: {listed(after[number])}"
        for number, target in begun.items()
        if after[number] != target
    }
    states = {number: state if number in begun else STAYS for number in held}
    return _told(options, held, {**held, **after}, states, problems)


def _targets(options: argparse.Namespace, seen: ClusterSeen, held: Held) -> dict[int, Replicas]:
    """To brokers that are there and, where something has to be copied, run."""
    check_known(seen, options.to or options.replicas)
    if options.to:
        targets = spread(seen, options.name, held, options.to, options.replication)
    else:
        targets = outright(options.name, held, options.replicas, is_whole_topic=not options.partition)
    copying = {broker for number, target in targets.items() for broker in set(target).difference(held[number])}
    down = sorted(each.broker_id for each in seen.brokers if each.is_fenced and each.broker_id in copying)
    if down:
        raise Refused(f"broker {down[0]} is down and would copy nothing; start it first, or leave it out")
    return targets


def under_way(cluster: Cluster, topics: Collection[str] | None = None) -> dict[TopicPartition, UnderWay]:
    """What moves at the moment, of these topics or of all."""
    answer = cluster.ask_anyone(LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest(topics=None))
    if answer.error_code:
        raise Refused(f"what moves is not known: {answer.error_message or name_of(answer.error_code)}")
    return {
        TopicPartition(topic.name, each.partition_index): UnderWay(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for topic in sorted(answer.topics, key=lambda topic: topic.name)
        if topics is None or topic.name in topics
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }


def _wished(cluster: Cluster, topic: str, wishes: Mapping[int, Replicas | None]) -> dict[int, str]:
    """Sends it; those that were refused, and why. None takes back."""
    if not wishes:
        return {}
    partitions = [
        ReassignablePartition(number, None if target is None else list(target)) for number, target in wishes.items()
    ]
    request = AlterPartitionReassignmentsRequest(
        int(CHANGE_SECONDS * 1_000), topics=[ReassignableTopic(topic, partitions)]
    )
    answer = cluster.ask_once(ALTER_PARTITION_REASSIGNMENTS, 0, request, ANSWER_SECONDS)
    if answer.error_code:
        raise Refused(f"nothing was moved: {answer.error_message or name_of(answer.error_code)}")
    return {
        each.partition_index: _why(each.error_code, each.error_message)
        for responses in answer.responses
        for each in responses.partitions
        if each.error_code
    }


def _why(code: int, message: str | None) -> str:
    if code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
        return "it is not moving any more"
    return message or name_of(code)


def _arrived(cluster: Cluster, topic: str, targets: Held, timeout_seconds: float | None) -> dict[int, Replicas]:
    """Watches until none of them moves any more. Where they are then: where they should be, unless somebody had other
    wishes."""
    deadline = math.inf if timeout_seconds is None else time.monotonic() + timeout_seconds
    goes_on = f"`klamm topic moves` shows it, `klamm topic move {topic} --cancel` takes it back"
    progress, missed = Progress(), set[int]()
    try:
        while left := _left(cluster, topic, targets):
            if time.monotonic() > deadline:
                raise Refused(f"not done after {timeout_seconds:g} s, and goes on: {goes_on}")
            for broker in _down(cluster, topic, left) - missed:
                progress.clear()
                say(f"broker {broker} is down, and the move waits for it: start it; or {goes_on}")
                missed.add(broker)
            progress.show(lambda: _how_far(left, len(targets)))
            time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        progress.clear()
        say(f"the move goes on: {goes_on}")
        raise
    finally:
        progress.clear()
    places = {number: TopicPartition(topic, number) for number in targets}
    there = partitions_once(
        cluster,
        [topic],
        lambda now: all(now[place].replicas == targets[number] for number, place in places.items()),
    )
    return {number: there[place].replicas for number, place in places.items()}


def _down(cluster: Cluster, topic: str, left: Sequence[UnderWay]) -> set[int]:
    """Of those that have to copy."""
    copying = {broker for each in left for broker in each.adding}
    return {each.broker_id for each in cluster.seen([topic]).brokers if each.is_fenced} & copying


def _left(cluster: Cluster, topic: str, targets: Held) -> list[UnderWay]:
    """Asked again while the controller is another: a move outlives it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return [each for place, each in under_way(cluster, [topic]).items() if place.partition in targets]
        except (Refused, NoAnswer):
            if time.monotonic() > deadline:
                raise
        time.sleep(WATCH_SECONDS)


def _how_far(left: Sequence[UnderWay], count: int) -> str:
    copying = listed(sorted({broker for each in left for broker in each.adding}))
    return f"{count - len(left)} of {counted(count, 'partition')} moved; copying: {copying}"


def _taken_back(
    options: argparse.Namespace, cluster: Cluster, moving: Mapping[TopicPartition, UnderWay], held: Held
) -> int:
    topic = options.name
    targets = {place.partition: each.target for place, each in moving.items() if place.partition in held}
    problems = _wished(cluster, topic, dict.fromkeys(targets))
    states = {number: TAKEN_BACK if number in targets else STAYS for number in held}
    return _told(options, {**held, **targets}, held, states, problems)


def _told(
    options: argparse.Namespace, before: Held, after: Held, states: Mapping[int, str], problems: Mapping[int, str]
) -> int:
    for number, problem in problems.items():
        failed("topic move", f"{TopicPartition(options.name, number)}: {problem}")
    states = {**states, **dict.fromkeys(problems, REFUSED)}
    if options.json:
        partitions = [
            {
                "partition": number,
                "before": list(before[number]),
                "after": list(after[number]),
                "state": state,
                "why": problems.get(number),
            }
            for number, state in states.items()
        ]
        print_json({"topic": options.name, "partitions": partitions})
    else:
        say_result(_text(options, before, after, states))
    return FAILED if problems else 0


def _text(options: argparse.Namespace, before: Held, after: Held, states: Mapping[int, str]) -> str:
    changed = [number for number, state in states.items() if state not in (STAYS, REFUSED)]
    if not changed:
        why = "nothing of it moves" if options.cancel else "nothing to move"
        return f"topic {options.name}: {why}"
    headings = ("partition", "was moving to", "stays on") if options.cancel else ("partition", "before", "after")
    how = states[changed[0]]
    head = f"topic {options.name}: {len(changed)} of {counted(len(states), 'partition')} {how}"
    if how == MOVING:
        head += "; `klamm topic moves` shows what is left"
    rows = [(number, listed(before[number]), listed(after[number])) for number in changed]
    return f"{head}\n{table(headings, rows)}"


def moves(options: argparse.Namespace) -> int:
    cluster = cluster_of(options)
    names = list(dict.fromkeys(options.name))
    if names:
        cluster.seen(names)
    moving = under_way(cluster, names or None)
    seen = cluster.seen(sorted({place.topic for place in moving})) if moving else None
    in_sync = {place_of(each): each.in_sync for each in seen.partitions} if seen else {}
    documents = [_document(place, each, in_sync.get(place, ())) for place, each in moving.items()]
    if options.json:
        print_json(documents)
    elif documents:
        rows = [tuple(listed(cell) if isinstance(cell, list) else cell for cell in each.values()) for each in documents]
        say_result(table(("topic", "partition", "from", "to", "copying"), rows))
    else:
        say_result("nothing moves")
    return 0


def _document(place: TopicPartition, each: UnderWay, in_sync: Sequence[int]) -> dict[str, object]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "from": list(each.origin),
        "to": list(each.target),
        "copying": [broker for broker in each.adding if broker not in in_sync],
    }
