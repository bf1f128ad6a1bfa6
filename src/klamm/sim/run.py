"""One run from its seed: a cluster starts, is used and troubled, healed, and has to come back; then all is read again.

First safety, then liveness: whatever happens, no promise may break; once everything is mended, every partition has a
leader and all its replicas in sync, and new writes are acknowledged, within a bound.
"""

import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from klamm.broker.directories import DELETED as DELETED_DIRECTORY
from klamm.broker.directories import STRAY
from klamm.broker.facts import CompactionFailed, RetentionFailed
from klamm.broker.replication import RACK_AWARE
from klamm.controller.names import CLUSTER_METADATA
from klamm.facts import Fact
from klamm.ids import NO_BROKER, Offset, TopicPartition
from klamm.log.names import DELETED
from klamm.metadata.image import Image
from klamm.node.facts import ChoreFailed, HandlerFailed
from klamm.sim.budget import Budget
from klamm.sim.checkers.beginnings import BeginningChecker
from klamm.sim.checkers.clients import ClientChecker
from klamm.sim.checkers.compaction import CompactionChecker
from klamm.sim.checkers.group_offsets import GroupOffsets
from klamm.sim.checkers.group_owners import GroupOwners
from klamm.sim.checkers.group_progress import GroupProgress
from klamm.sim.checkers.logs import LogChecker
from klamm.sim.checkers.quorum import QuorumChecker
from klamm.sim.checkers.removals import RemovalChecker
from klamm.sim.checkers.replication import ReplicationChecker
from klamm.sim.checkers.snapshots import SnapshotChecker
from klamm.sim.checkers.steadiness import SteadinessChecker
from klamm.sim.checkers.storage import check_offline
from klamm.sim.checkers.unclean import UncleanElections
from klamm.sim.clients.consumer import Consumer
from klamm.sim.clients.history import History, Key
from klamm.sim.cluster import Cluster
from klamm.sim.coverage import Coverage
from klamm.sim.faults import Nemesis
from klamm.sim.forger import FORGED, Forger, key_of
from klamm.sim.groups import SETTINGS as GROUP_SETTINGS
from klamm.sim.groups import Groups
from klamm.sim.hurrying import drawn_settings, hurried
from klamm.sim.machine import Machine
from klamm.sim.network import Network
from klamm.sim.plan import Plan, rack_names
from klamm.sim.promise import Broken, broken
from klamm.sim.report import Report
from klamm.sim.topics import FLUSHED, HOUSEKEEPING, LOOSE, OF_GROUPS, OFFSETS, PASSING, topics_of
from klamm.sim.workload import Workload
from klamm.sim.world import World

STARTING_MS = 30_000.0
HEALING_MS = 60_000.0
DELIVERING_MS = 30_000.0
READING_MS = 30_000.0
REMOVING_MS = 30_000.0
GROUPING_MS = 30_000.0
LOOK_MS = 50.0
SIEGE, SIEGE_PAUSE_MS = 100, 25.0
OF_DISKS = ("input/output error", "no space left")
"""What disks say that are told to fail. Housekeeping says it too, and tries again."""
SETTINGS = {
    "log.segment.bytes": "1048576",
    "metadata.log.max.snapshot.interval.ms": "4000",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "log.segment.delete.delay.ms": "1000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


@dataclass(slots=True)
class Outcome:
    plan: Plan
    failure: Broken | None
    digest: str
    simulated_ms: float
    events: int
    faults: Counter[str]
    operations: Counter[str]
    reached: Counter[str]
    """How often rare branches were reached, by the names of `coverage.EXPECTED`."""
    acknowledged: int
    reads: int
    story: list[str] = field(repr=False, default_factory=list)


class Run:
    def __init__(self, plan: Plan, *, keeps_all: bool = False) -> None:
        self.plan = plan
        self.world = World(plan.seed, keeps_all=keeps_all)
        self.network = Network(self.world)
        self.network.latency_ms = plan.latency_ms
        racks = rack_names(plan.racks)
        settings = SETTINGS | drawn_settings(plan) | ({"replica.selector.class": RACK_AWARE} if racks else {})
        if plan.topics:
            settings |= HOUSEKEEPING
        if plan.groups:
            settings |= GROUP_SETTINGS
        self.cluster = Cluster(self.world, self.network, plan.brokers, plan.voters, settings, racks)
        self.history = History()
        self.quorum = QuorumChecker(self.cluster)
        self.steadiness = SteadinessChecker(self.cluster)
        self.snapshots = SnapshotChecker()
        self.removals = RemovalChecker()
        self.replication = ReplicationChecker(self.cluster)
        self.compaction = CompactionChecker(self.history, self.replication.committed, self.replication.unclean)
        self.logs = LogChecker(self.compaction)
        self.clients = ClientChecker(self.history, self.replication.committed, self.compaction)
        self._topics = topics_of(plan.topics, plan.flush_ms)
        topics = {topic.name: topic for topic in (*self._topics, OF_GROUPS)}
        self.beginnings = BeginningChecker(topics, self.history, self.replication.committed, self.clients.starts)
        self.logs.on_beginning = self.beginnings.begins
        self.workload = Workload(self.world, self.cluster, plan, self.history, self.beginnings)
        self.groups = self.workload.groups
        if self.groups is not None:
            self._check_groups(self.groups)
        self.unclean = UncleanElections(self.replication.unclean, self.clients.may_lose)
        self.quorum.on_committed = self.unclean.committed
        budget = Budget(self.cluster, self.replication, FLUSHED, voters_leave="change voters" in plan.operations)
        self.nemesis = Nemesis(self.world, self.cluster, plan, budget, list(self.workload.clients))
        if self.groups is not None:
            self.nemesis.also(self.groups.kinds())
        self.forger = Forger(self.world, self.cluster, voters_change="change voters" in plan.operations)
        self.nemesis.also({FORGED: self.forger.strike})
        self.nemesis.on_blackout = self._blackout
        self.nemesis.on_tending = self._rescue
        self.coverage = Coverage(self.cluster)
        if keeps_all:
            report = Report(self.cluster)
            self.world.aside = report.columns
            self.world.story.append(report.header())
        for machine in self.cluster.machines.values():
            machine.after_step = self._look
            machine.on_fact = self._fact
            machine.on_forgetting = self._forgetting

    def _check_groups(self, groups: Groups) -> None:
        history, may_lose = groups.history, self.clients.may_lose
        self.group_offsets = GroupOffsets(self.cluster, history, may_lose)
        self.group_owners = GroupOwners(history, self.group_offsets.is_excused)
        self.group_progress = GroupProgress(history, may_lose)

        def told(*arguments: Any) -> None:
            self.group_offsets.told(*arguments)
            self.group_owners.told(*arguments)

        history.on_told = told

    def outcome(self) -> Outcome:
        failure = None
        try:
            with hurried(self.plan.seed), self.coverage.listening(), self.forger.listening():
                self._run()
        except Broken as found:
            failure = found
            self.world.tell(f"BROKEN {found}")
        except Exception as error:
            failure = Broken("I30", f"{type(error).__name__}: {error}")
            for line in traceback.format_exc().splitlines():
                self.world.story.append(line)
        self.coverage.at_end()
        reached = self.coverage.reached
        reached["read from a follower"] += sum(each.read_from_followers for each in self.workload.consumers)
        reached["records taken by retention"] += self.beginnings.moved
        reached["compacted before it was read"] += self.compaction.skipped
        reached["unclean election"] += self.unclean.count
        reached["let in, and the leader has not heard"] += self.replication.unheard
        if self.groups is not None:
            reached += self.groups.history.reached
        return Outcome(
            plan=self.plan,
            failure=failure,
            digest=self.world.digest,
            simulated_ms=self.world.now_ms,
            events=self.world.events,
            faults=self.nemesis.happened,
            operations=self.workload.done,
            reached=self.coverage.reached,
            acknowledged=sum(producer.acknowledged for producer in self.workload.producers),
            reads=self.history.reads,
            story=list(self.world.story),
        )

    def _run(self) -> None:
        self.cluster.start()
        machines = list(self.cluster.machines.values())
        self._until(lambda: all(machine.is_serving for machine in machines), STARTING_MS, "the cluster has not started")
        self.workload.begin()
        self._until(self._has_topics, STARTING_MS, "the topics are not there")
        self.nemesis.begin()
        self.world.run_until(self.world.now_ms + self.plan.duration_ms)
        self.world.tell("everything is mended")
        self.nemesis.heal()
        if self.groups is not None:
            self.groups.settle()
        self._until(self._is_well, HEALING_MS, "the cluster has not come back")
        before = [producer.acknowledged for producer in self.workload.producers]
        self._until(lambda: self._write_again(before), DELIVERING_MS, "new writes are not acknowledged")
        self.workload.stop_writing()
        producers = self.workload.producers
        self._until(lambda: all(each.is_done for each in producers), DELIVERING_MS, "producers still wait")
        self._until(self._is_well, HEALING_MS, "the cluster has not settled")
        if FORGED in self.plan.faults:
            self._besiege()
        reader = self.workload.reader()
        # (A leader may drop a follower once more that waits for an answer of its earlier life.)
        done = lambda: self._has_read_all(reader) and self._is_well()  # noqa: E731
        self._until(done, READING_MS, "not everything can be read")
        if self.groups is not None:
            self._groups_come_to_rest(self.groups)
        self._room_comes_back()
        # Who led until a moment ago may have what nobody else has, and not know yet that it is to drop it; and a
        # coordinator goes on writing as members tell it what they own.
        done = lambda: self._is_well() and self._replicas_agree()  # noqa: E731
        self._until(done, HEALING_MS, "replicas do not end alike")
        self._at_end()

    def _besiege(self) -> None:
        """Nothing happens to anybody, but for what somebody forges."""
        self.world.tell("only forged requests from here on")
        self.steadiness.begin()
        for _ in range(SIEGE):
            self.forger.strike()
            self.world.run_until(self.world.now_ms + SIEGE_PAUSE_MS)
        self.steadiness.end()
        self._until(self._is_well, HEALING_MS, "the cluster has not got over forged requests")

    def _groups_come_to_rest(self, groups: Groups) -> None:
        def complaint() -> str:
            return groups.complaint(self.cluster.latest_image(), self.group_progress)

        self._until(lambda: not complaint(), GROUPING_MS, "groups have not come to rest", complaint)
        asked = {plan.name for plan in groups.plans}
        for member in groups.members:
            member.stop_committing()
        rest = lambda: not any(member.commits_under_way for member in groups.members)  # noqa: E731
        self._until(rest, READING_MS, "commits are not answered")
        for name in sorted(asked):
            groups.watcher.ask_in_the_end(name, partial(asked.discard, name))
        self._until(lambda: not asked, READING_MS, "committed offsets are not told")
        for plan in groups.plans:
            self.group_offsets.at_end(plan.name)

    def _room_comes_back(self) -> None:
        """What is deleted by now is removed in the end, whatever interrupted that (I30). (Of the metadata log it is
        kept for a minute, which is longer than a run.)"""
        deleted = [
            (machine.disk, name, inode)
            for machine in self.cluster.running
            for name, inode in machine.disk.names.items()
            if (name.endswith(DELETED) and not name.startswith(CLUSTER_METADATA)) or f"{DELETED_DIRECTORY}/" in name
            # (What a node keeps because it does not know whose it is, it keeps as it found it.)
            if f"{STRAY}/" not in name
        ]

        def left() -> str:
            return ", ".join(name for disk, name, inode in deleted if disk.names.get(name) is inode)

        self._until(lambda: not left(), REMOVING_MS, "what was deleted still takes room", left)

    def _replicas_agree(self) -> bool:
        ends: dict[TopicPartition, set[Offset]] = {}
        for machine in self.cluster.running:
            for partition in machine.broker.partitions:
                ends.setdefault(partition.topic_partition, set()).add(partition.log.end_offset)
        return all(len(each) == 1 for each in ends.values())

    def _until(
        self, holds: Callable[[], bool], within_ms: float, otherwise: str, why: Callable[[], str] | None = None
    ) -> None:
        """I29."""
        end_ms = self.world.now_ms + within_ms
        while not holds():
            if self.world.now_ms >= end_ms:
                broken("I29", f"{otherwise} within {within_ms / 1_000:.0f} s: {(why or self._complaint)()}")
            self.world.run_until(self.world.now_ms + LOOK_MS)

    def _has_topics(self) -> bool:
        return {topic.name for topic in self._topics} <= self.cluster.latest_image().topics.keys()

    def _write_again(self, before: list[int]) -> bool:
        producers = self.workload.producers
        return all(
            each.settings.acks == 0 or each.acknowledged > count for each, count in zip(producers, before, strict=True)
        )

    def _is_well(self) -> bool:
        return not self._complaint()

    def _complaint(self) -> str:
        controller = self.cluster.controller()
        if controller is None:
            return "there is no controller"
        image = controller.broker.image
        if not self._all_vote(controller):
            return (
                f"{controller.name} knows {controller.broker.quorum.voters}, which are others than those that may vote"
            )
        for machine in self.cluster.machines.values():
            if not machine.is_running or not machine.is_serving:
                return f"{machine.name} does not serve"
            if machine.broker.image.offset != image.offset:
                return f"{machine.name} knows the cluster up to {machine.broker.image.offset}, not {image.offset}"
            if machine.node_id not in image.brokers or not image.brokers[machine.node_id].is_active:
                return f"{machine.name} is not counted on"
        return _partition_complaint(image)

    def _all_vote(self, controller: Machine) -> bool:
        """Where nobody takes voters out, all that may vote do, with the disks they have."""
        if "change voters" in self.plan.operations:
            return True
        voters, machines = controller.broker.quorum.voters, self.cluster.machines
        return all(machines[each].is_running and voters.has(key_of(machines[each])) for each in self.cluster.voters)

    def _has_read_all(self, reader: Consumer) -> bool:
        image = self.cluster.latest_image()
        for topic in image.topics.values():
            if topic.name == OFFSETS or topic.name.startswith(PASSING):
                # (What stands there is not for readers of records; its own checker reads it. Or it is nothing.)
                continue
            for index, state in enumerate(topic.partitions):
                place = reader.places.get((topic.topic_id, index))
                partition = self.cluster.machines[state.leader].broker.partitions.get(topic.name, index)
                if place is None or partition is None or place.offset < partition.log.end_offset:
                    return False
        return True

    # Looking.

    def _look(self, machine: Machine) -> None:
        self.cluster.note_image(machine)
        if self.cluster.latest_image().brokers.keys() - self.cluster.machines.keys():
            broken("I34", "a broker is registered that never answered at its address")
        failure, machine.disk.failure = machine.disk.failure, None
        self.coverage.after_step(machine)
        self.quorum.after_step(machine)
        self.steadiness.after_step(machine)
        self.snapshots.after_step(machine)
        if machine.broker.is_open:
            self.replication.after_step(machine)
            self.logs.after_step(machine)
        machine.disk.failure = failure

    def _blackout(self) -> None:
        """Whatever is not flushed before it is acknowledged may be gone."""
        for topic in self.cluster.latest_image().topics.values():
            if topic.name not in FLUSHED:
                self._excuse({(topic.topic_id, index) for index in range(len(topic.partitions))})

    def _forgetting(self, machine: Machine) -> None:
        """With `min.insync.replicas=1` one machine may be all that has something, also while another is counted on."""
        for topic in self.cluster.latest_image().topics.values():
            if topic.name in LOOSE:
                states = enumerate(topic.partitions)
                self._excuse({(topic.topic_id, index) for index, state in states if machine.node_id in state.replicas})

    def _rescue(self) -> None:
        """Where everybody has lost something, and the last leader its disk, an operator has to say that anybody may
        lead. Nobody else needs that."""
        for name, topic in self.cluster.latest_image().topics.items():
            for index, state in enumerate(topic.partitions):
                if state.leader == NO_BROKER and (topic.topic_id, index) in self.replication.unclean:
                    self.world.tell(f"admin: elect anybody for {name}-{index}")
                    self.workload.admin.elect_unclean(name, [index], lambda answer: None)

    def _excuse(self, keys: set[Key]) -> None:
        self.replication.unclean |= keys
        self.clients.may_lose |= keys

    def _fact(self, machine: Machine, fact: Fact) -> None:
        self.coverage.fact(fact)
        check_offline(machine, fact)
        self.snapshots.fact(machine, fact)
        self.removals.fact(machine, fact, self.cluster.latest_image())
        of_chores = isinstance(fact, ChoreFailed | CompactionFailed | RetentionFailed)
        if of_chores and not any(reason in str(fact) for reason in OF_DISKS):
            broken("I30", f"{machine.name}: {fact}")
        if isinstance(fact, HandlerFailed):
            broken("I30", f"{machine.name}: {fact}")

    def _at_end(self) -> None:
        self.quorum.at_end()
        for machine in self.cluster.running:
            self.logs.at_end(machine)
            self.compaction.at_end(machine)
        image = self.cluster.latest_image()
        exists = {(topic.topic_id, index) for topic in image.topics.values() for index in range(len(topic.partitions))}
        self.clients.at_end(exists)


def _partition_complaint(image: Image) -> str:
    for name, topic in image.topics.items():
        for index, state in enumerate(topic.partitions):
            if state.leader == NO_BROKER:
                return f"{name}-{index} has no leader"
            if sorted(state.isr) != sorted(state.replicas) or state.adding or state.removing:
                return f"{name}-{index}: {state}"
    return ""
