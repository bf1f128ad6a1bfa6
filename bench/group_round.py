"""One system's turn: a broker on an empty directory, and one part of what is measured about groups, step by step.

A turn is a generator that yields after every rebalance and every stretch of load. Whoever leads two systems' turns in
alternate steps measures both in the same seconds, which matters where others use the machine too.

`classic` and `newer`: one group of 10, 50, 100 and 500 members, each with two partitions. All join at once; then one
more joins and one leaves again, a few times; then everybody sends heartbeats as fast as the answers come, and commits.
`many-classic` and `many-newer`: a thousand groups of one member; then kill -9, and a start on the same directory.

Before anything counts, a group of twenty goes through the same, because a JVM compiles what is hot.
"""

import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from uuid import uuid4

from bench import process, raw
from bench.group_lines import Conversation, Deadline, Line, Lines, WrongAnswerError
from bench.group_members import PROTOCOLS, Group, Member
from bench.group_offsets import LINES, Committer, wait_for_coordinators, wait_until_served
from bench.start import started
from bench.store import Figures
from bench.systems import Node, System
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA, METADATA_VERSION = 3, 12
PARTS = ("classic", "newer", "many-classic", "many-newer")
SETTLE_SECONDS = 1.0
ALL_JOIN_TIMES = 3

Steps = Generator[None, None, None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much. Small groups are rebalanced more often, because the kernel counts processor time in hundredths."""

    name: str
    counts: tuple[int, ...]
    groups: int
    rebalances: Callable[[int], int]
    steady_seconds: float
    alone: int
    warm_rebalances: int


FULL = Plan("full", (10, 50, 100, 500), 1000, lambda count: max(5, 100 // count), 1.0, 1000, 20)
QUICK = Plan("quick", (10, 50), 100, lambda count: 2, 0.3, 100, 2)


@dataclass(slots=True)
class Spent:
    """What a piece of work took: the clock, the broker's processor time, and the load generator's."""

    seconds: float
    broker_cpu: float
    client_cpu: float


class Turn:
    """A started broker and the members at it."""

    def __init__(self, node: Node, lines: Lines, protocol: str, figures: Figures) -> None:
        self.node = node
        self.lines = lines
        self.figures = figures
        self._member = PROTOCOLS[protocol]
        self._asking = lines.open()

    def group(self, topic: str, partitions: int) -> Group:
        return Group(f"group-{uuid4()}", topic, self._topic_id(topic), partitions)

    def create_topic(self, partitions: int) -> str:
        topic = f"topic-{uuid4()}"
        connection = raw.Connection(self.node.port)
        raw.create_topics(connection, [(topic, partitions)])
        raw.wait_until_served(connection, [(topic, partitions)])
        connection.close()
        return topic

    def members(self, group: Group, count: int) -> list[Member]:
        return [self._member(group, self.lines.open()) for _ in range(count)]

    def spent(self, talks: Iterable[tuple[Line, Conversation]]) -> Spent:
        cpu, client_cpu = self.node.cpu_seconds(), time.process_time()
        begin = time.perf_counter()
        self.lines.hold(talks)
        seconds = time.perf_counter() - begin
        return Spent(seconds, self.node.cpu_seconds() - cpu, time.process_time() - client_cpu)

    def rebalanced(self, group: Group, members: list[Member], leaver: Member | None = None) -> Spent:
        """Everybody takes part until the group is settled with these members; the clock stops at that moment."""
        talks = [(leaver.line, leaver.leaving())] if leaver else []
        talks += [(member.line, member.taking_part()) for member in members]
        begin = time.perf_counter()
        group.begin(len(members))
        spent = self.spent(talks)
        if not group.is_settled or sorted(group.owners) != list(range(group.partitions)):
            raise WrongAnswerError("not every partition has an owner")
        spent.seconds = group.settled_at - begin
        return spent

    def disband(self, members: list[Member]) -> None:
        self.lines.hold([(member.line, member.leaving()) for member in members])
        for member in members:
            self.lines.close(member.line)

    def resident_mib(self) -> float:
        return process.memory(self.node.pid).resident_mib

    def _topic_id(self, topic: str) -> bytes:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        answer = self.lines.ask(self._asking, METADATA, METADATA_VERSION, request)
        return bytes(answer.topics[0].topic_id)


def steps(system: System, directory: Path, part: str, plan: Plan, figures: Figures) -> Steps:
    """Everything of this part; `figures` is filled on the way."""
    protocol = part.removeprefix("many-")
    with system.prepare(directory) as node:
        started(node, "first")
        with Lines(node.port) as lines:
            wait_for_coordinators(lines, [f"group-{index}" for index in range(500)], "first", node.port)
            turn = Turn(node, lines, protocol, figures)
            yield from _warm_up(turn, plan)
            if part == protocol:
                for count in plan.counts:
                    yield from _one_group(turn, count, plan)
                return
            members, committers = yield from _many_groups(turn, plan)
        _restart(turn, members, committers)


def _warm_up(turn: Turn, plan: Plan) -> Steps:
    topic = turn.create_topic(42)
    group = turn.group(topic, 42)
    members = turn.members(group, 20)
    turn.rebalanced(group, members)
    yield
    yield from _come_and_go(turn, group, members, plan.warm_rebalances)
    yield from _beats(turn, members, plan.steady_seconds)
    yield from _commits(turn, [Committer(group, member) for member in members], plan.steady_seconds)
    turn.disband(members)


def _one_group(turn: Turn, count: int, plan: Plan) -> Steps:
    topic = turn.create_topic(2 * (count + 1))
    joins: list[Spent] = []
    while True:
        group = turn.group(topic, 2 * (count + 1))
        members = turn.members(group, count)
        joins.append(turn.rebalanced(group, members))
        yield
        if len(joins) == ALL_JOIN_TIMES:
            break
        turn.disband(members)
    _note(turn, f"{count}.all_join", joins)
    enters, leaves = yield from _come_and_go(turn, group, members, plan.rebalances(count))
    _note(turn, f"{count}.one_joins", enters)
    _note(turn, f"{count}.one_leaves", leaves)
    turn.figures[f"{count}.resident_mib"] = turn.resident_mib()
    _note_steady(turn, f"{count}.heartbeat", (yield from _beats(turn, members, plan.steady_seconds)))
    committers = [Committer(group, member, place) for place, member in enumerate(members)]
    _note_steady(turn, f"{count}.commit", (yield from _commits(turn, committers, plan.steady_seconds)))
    turn.lines.hold([(each.line, each.verifying()) for each in committers])
    turn.disband(members)


def _many_groups(turn: Turn, plan: Plan) -> Generator[None, None, tuple[list[Member], list[Committer]]]:
    topic = turn.create_topic(1)
    pattern = turn.group(topic, 1)
    groups = [Group(f"one-of-many-{index}", topic, pattern.topic_id, 1) for index in range(plan.groups)]
    members = [turn.members(group, 1)[0] for group in groups]
    time.sleep(SETTLE_SECONDS)
    before = turn.resident_mib()
    for group in groups:
        group.begin(1)
    spent = turn.spent([(member.line, member.taking_part()) for member in members])
    if not all(group.is_settled for group in groups):
        raise WrongAnswerError("not every group is settled")
    _note(turn, "groups.all_join", [spent])
    yield
    turn.figures["groups.kib_each"] = (turn.resident_mib() - before) * 1024 / plan.groups
    committers = [Committer(group, member) for group, member in zip(groups, members, strict=True)]
    _note(turn, "groups.all_commit", [turn.spent([(each.line, each.committing_alone(1)) for each in committers])])
    yield
    _note_steady(turn, "groups.heartbeat", (yield from _beats(turn, members, plan.steady_seconds)))
    _note_steady(turn, "groups.commit", (yield from _commits(turn, committers, plan.steady_seconds)))
    alone = committers[0]
    alone.latencies_ms.clear()
    turn.spent([(alone.line, alone.committing_alone(plan.alone))])
    hundredths = quantiles(alone.latencies_ms, n=100)
    turn.figures["alone.p50_ms"], turn.figures["alone.p99_ms"] = hundredths[49], hundredths[98]
    turn.figures["groups.resident_mib"] = turn.resident_mib()
    yield
    wait_until_served(turn.lines, [each.line for each in committers[:LINES]], committers)
    return members, committers


def _restart(turn: Turn, members: list[Member], committers: list[Committer]) -> None:
    """kill -9, a start, and every group asked for its offsets and its member for a heartbeat.

    A few connections ask for all: a thousand new ones at once would measure how many the listener lets wait.
    """
    turn.node.kill()
    start = started(turn.node, "first", create=False)
    begin = time.perf_counter()
    waiting = iter(members)

    def beating() -> Conversation:
        for member in waiting:
            yield from member.beating(Deadline(0))

    with Lines(turn.node.port) as lines:
        at = [lines.open() for _ in range(LINES)]
        wait_until_served(lines, at, committers)
        lines.hold([(line, beating()) for line in at])
    turn.figures["restart.first_ack_seconds"] = start.first_ack
    turn.figures["restart.after_ack_seconds"] = time.perf_counter() - begin
    turn.figures["restart.seconds"] = start.first_ack + turn.figures["restart.after_ack_seconds"]


def _come_and_go(
    turn: Turn, group: Group, members: list[Member], times: int
) -> Generator[None, None, tuple[list[Spent], list[Spent]]]:
    enters, leaves = [], []
    for _ in range(times):
        (one,) = turn.members(group, 1)
        enters.append(turn.rebalanced(group, [*members, one]))
        yield
        leaves.append(turn.rebalanced(group, members, leaver=one))
        turn.lines.close(one.line)
        yield
    return enters, leaves


def _beats(turn: Turn, members: list[Member], seconds: float) -> Generator[None, None, tuple[Spent, int]]:
    until = Deadline(seconds)
    spent = turn.spent([(member.line, member.beating(until)) for member in members])
    yield
    return spent, until.count


def _commits(turn: Turn, committers: list[Committer], seconds: float) -> Generator[None, None, tuple[Spent, int]]:
    until = Deadline(seconds)
    spent = turn.spent([(each.line, each.committing(until)) for each in committers])
    yield
    return spent, until.count


def _note(turn: Turn, name: str, spent: list[Spent]) -> None:
    turn.figures[f"{name}.seconds"] = median(each.seconds for each in spent)
    turn.figures[f"{name}.cpu"] = sum(each.broker_cpu for each in spent) / len(spent)
    turn.figures[f"{name}.client_cpu"] = sum(each.client_cpu for each in spent) / len(spent)


def _note_steady(turn: Turn, name: str, load: tuple[Spent, int]) -> None:
    spent, count = load
    turn.figures[f"{name}.per_second"] = count / spent.seconds
    turn.figures[f"{name}.cpu_per_1000"] = spent.broker_cpu / count * 1000
    turn.figures[f"{name}.client_cpu_per_1000"] = spent.client_cpu / count * 1000
