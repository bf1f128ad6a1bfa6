"""Which rare branches a run has reached, by plain names (I33).

A simulator is as good as its workload: a branch that no seed ever reaches is not proven by any number of seeds. So what
is rare is counted, and `klamm sim --seeds` names what of `EXPECTED` was not reached. Three ways lead here: facts that
nodes tell, changes of the cluster's image, and a few functions of nodes that are listened to for as long as the run
lasts (`listening`): they do what they always do, and what came of it is counted.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from klamm.broker.facts import (
    DamagedCheckpoint,
    DirectoryKept,
    GroupsLoaded,
    InSyncReplicasChanged,
    LogCut,
    PartitionFailed,
    PartitionRevived,
    RecordsMissing,
    StrayDirectory,
)
from klamm.controller import alterations
from klamm.coordinator.groups import classic_members, consumer
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Fact
from klamm.ids import NO_BROKER, BrokerId
from klamm.log.log import Log
from klamm.log.recovery import FlushedRecordsMissing, TailCut
from klamm.log.salvage import RecordsSetAside
from klamm.metadata.image import EMPTY, Image, PartitionState, Topic
from klamm.node.facts import EarlierLifeStands, MetadataFailed, NotDecided, RegistrationRefused
from klamm.partition.fetching import FetchPlan
from klamm.partition.partition import Partition
from klamm.quorum.facts import LeaderResigned, SnapshotFetched, SnapshotTaken, SnapshotUnreadable, VotersChanged
from klamm.quorum.journal import Journal
from klamm.quorum.raft import Raft
from klamm.records.batch import read_header
from klamm.sim.clients.group_history import COVERED
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.topics import OFFSETS

OF_FACTS: dict[type[Fact], str] = {
    LogCut: "log cut where it parted",
    TailCut: "torn tail cut",
    FlushedRecordsMissing: "flushed records missing",
    StrayDirectory: "directory set aside",
    DirectoryKept: "directory kept",
    RecordsSetAside: "records behind damage kept",
    RecordsMissing: "missing records told",
    DamagedCheckpoint: "damaged checkpoint",
    PartitionFailed: "partition offline",
    PartitionRevived: "partition revived",
    SnapshotTaken: "snapshot taken",
    SnapshotFetched: "snapshot loaded from another",
    SnapshotUnreadable: "snapshot unreadable",
    LeaderResigned: "quorum leader resigned",
    MetadataFailed: "metadata log offline",
    NotDecided: "decision put off",
    RegistrationRefused: "registration refused",
    EarlierLifeStands: "earlier life still counted on",
    GroupsLoaded: "coordinator loaded",
}

OF_WRITES: dict[ErrorCode, str] = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "write to a former leader refused",
    ErrorCode.NOT_ENOUGH_REPLICAS: "write refused, too few in sync",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "sequence out of order refused",
}

EXPECTED = (
    *OF_FACTS.values(),
    *OF_WRITES.values(),
    "ELR election",
    "last known leader returned",
    "unclean election",
    "partition without a leader",
    "in-sync replicas became fewer",
    "in-sync replicas became more",
    "slow follower dropped by its leader",
    "let in, and the leader has not heard",
    "reassignment done",
    "reassignment while a node is down",
    "zombie leader fenced",
    "old leader epoch refused",
    "unknown leader epoch refused",
    "old leader's in-sync replicas refused",
    "stale request after an epoch change",
    "stale answer after an epoch change",
    "retry recognised",
    "retry overtakes its first try",
    "snapshot loaded at start",
    "metadata log cut where it parted",
    "controller failed over",
    "voter added",
    "voter removed",
    "disk replaced",
    "could not start",
    "held back by a cut link",
    "read from a follower",
    "records taken by retention",
    "log cut in several pieces",
    "ended in the middle of a removal",
    "compacted before it was read",
    "coordinator moved",
    "classic group became a consumer group",
    "consumer group became a classic group",
    *COVERED,
)


class Coverage:
    def __init__(self, cluster: Cluster) -> None:
        self.reached: Counter[str] = Counter()
        self._cluster = cluster
        self._image: Image = EMPTY
        self._controller: BrokerId = NO_BROKER
        self._voters: set[BrokerId] = set(cluster.voters)
        self._tries: dict[tuple[bytes, int, int, int, int], int] = {}
        """When a batch was sent that a leader was given, by partition, producer and sequence: the latest try of it."""

    def fact(self, fact: Fact) -> None:
        name = OF_FACTS.get(type(fact))
        if name is not None:
            self.reached[name] += 1
        if isinstance(fact, VotersChanged):
            self._voters_changed(set(fact.voters))
        elif isinstance(fact, InSyncReplicasChanged):
            self.reached["slow follower dropped by its leader"] += len(fact.after) < len(fact.before)

    def after_step(self, machine: Machine) -> None:
        """A node has acted, and the cluster has taken note of its image."""
        if machine.broker.controller is not None and machine.node_id != self._controller:
            self.reached["controller failed over"] += self._controller != NO_BROKER
            self._controller = machine.node_id
        image = self._cluster.latest_image()
        if image is not self._image:
            before, self._image = self._image, image
            for name, topic in image.topics.items():
                old = before.topics.get(name)
                if old is not None and old is not topic and old.topic_id == topic.topic_id:
                    self._topic_changed(old, topic)
                    if name == OFFSETS:
                        pairs = zip(old.partitions, topic.partitions, strict=False)
                        self.reached["coordinator moved"] += sum(was.leader != now.leader >= 0 for was, now in pairs)

    def at_end(self) -> None:
        self.reached["disk replaced"] += sum(machine.disks - 1 for machine in self._cluster.machines.values())
        self.reached["could not start"] += sum(machine.failed_starts for machine in self._cluster.machines.values())
        interrupted = sum(machine.interrupted_removals for machine in self._cluster.machines.values())
        self.reached["ended in the middle of a removal"] += interrupted
        self.reached["held back by a cut link"] += self._cluster.network.held_back
        # What was counted as nothing was not reached.
        self.reached += Counter()

    # The image.

    def _topic_changed(self, before: Topic, after: Topic) -> None:
        for was, state in zip(before.partitions, after.partitions, strict=False):
            if was is not state:
                self._partition_changed(was, state)

    def _partition_changed(self, was: PartitionState, state: PartitionState) -> None:
        reached = self.reached
        if state.leader != was.leader:
            self._leader_changed(was, state)
        reached["in-sync replicas became fewer"] += len(state.isr) < len(was.isr)
        reached["in-sync replicas became more"] += len(state.isr) > len(was.isr)
        if was.adding or was.removing:
            is_done = not (state.adding or state.removing)
            reached["reassignment done"] += is_done
            if is_done or state.isr != was.isr:
                reached["reassignment while a node is down"] += self._is_anybody_away(was)

    def _leader_changed(self, was: PartitionState, state: PartitionState) -> None:
        if state.leader == NO_BROKER:
            self.reached["partition without a leader"] += 1
        elif state.leader in was.elr:
            self.reached["ELR election"] += 1
        elif state.recovering and not was.recovering:
            # Both may lose records: such a leader begins in recovery.
            is_known = state.leader in was.last_known_elr
            self.reached["last known leader returned" if is_known else "unclean election"] += 1

    def _is_anybody_away(self, state: PartitionState) -> bool:
        machines = [self._cluster.machines[node_id] for node_id in state.replicas]
        network = self._cluster.network
        return any(not each.is_running or each.is_paused or network.is_cut_off(each) for each in machines)

    def _voters_changed(self, voters: set[BrokerId]) -> None:
        self.reached["voter added"] += bool(voters - self._voters)
        self.reached["voter removed"] += bool(self._voters - voters)
        self._voters = voters

    # Listening.

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While this lasts, some functions of all nodes are heard."""
        doors: list[tuple[Any, str, Callable[[Any], Any]]] = [
            (Partition, "append", self._append),
            (Partition, "take_role", self._take_role),
            (Partition, "check_epoch", self._check_epoch),
            (Log, "append_as_leader", self._append_as_leader),
            (Log, "truncate_to", self._truncate_to),
            (FetchPlan, "take", self._take),
            (alterations, "_check_epochs", self._check_epochs),
            (Raft, "heard", self._heard),
            *((Raft, name, self._asked) for name in ("vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch")),
            (consumer, "upgrade", self._upgrade),
            *((where, "downgrade", self._downgrade) for where in (consumer, classic_members)),
            (Journal, "_load_latest_snapshot", self._load_latest_snapshot),
            (Journal, "cut_where_it_parts", self._cut_where_it_parts),
        ]
        before = [(where, name, where.__dict__[name]) for where, name, _ in doors]
        for where, name, heard in doors:
            setattr(where, name, heard(where.__dict__[name]))
        try:
            yield
        finally:
            for where, name, right in before:
                setattr(where, name, right)

    def _append(self, right: Any) -> Any:
        def append(partition: Partition, view: memoryview, acks: int, now: Any, **rest: Any) -> Any:
            self._note_try(partition, view)
            try:
                return right(partition, view, acks, now, **rest)
            except KafkaError as error:
                if error.code in OF_WRITES:
                    self.reached[OF_WRITES[error.code]] += 1
                raise

        return append

    def _note_try(self, partition: Partition, view: memoryview) -> None:
        """A retry has a later time than the try before it. Over one connection nothing overtakes; what was held back
        in a cut link arrives after what was sent over another."""
        batch = read_header(view)
        if batch.producer_id < 0:
            return
        index = partition.topic_partition.partition
        name = (partition.topic_id, index, batch.producer_id, batch.producer_epoch, batch.base_sequence)
        latest = self._tries.get(name, -1)
        self.reached["retry overtakes its first try"] += batch.max_timestamp < latest
        self._tries[name] = max(latest, batch.max_timestamp)

    def _append_as_leader(self, right: Any) -> Any:
        def append_as_leader(log: Log, view: memoryview, leader_epoch: int, now: Any, **rest: Any) -> Any:
            appended = right(log, view, leader_epoch, now, **rest)
            self.reached["retry recognised"] += appended.duplicate
            return appended

        return append_as_leader

    def _truncate_to(self, right: Any) -> Any:
        def truncate_to(log: Log, offset: int) -> bool:
            was_cut: bool = right(log, offset)
            self.reached["log cut in several pieces"] += was_cut and log.end_offset > offset
            return was_cut

        return truncate_to

    def _take_role(self, right: Any) -> Any:
        def take_role(partition: Partition, state: PartitionState, now: Any) -> None:
            led = partition.leading
            right(partition, state, now)
            if led is not None and partition.leading is None:
                self.reached["zombie leader fenced"] += self._somebody_leads_after(partition, led.epoch)

        return take_role

    def _somebody_leads_after(self, partition: Partition, epoch: int) -> bool:
        topic, index = partition.topic_partition.topic, partition.topic_partition.partition
        for machine in self._cluster.running:
            if machine.broker.is_open and machine.node_id != partition.me:
                other = machine.broker.partitions.get(topic, index)
                if other is not None and other.topic_id == partition.topic_id and other.leading is not None:
                    return other.leading.epoch > epoch
        return False

    def _check_epoch(self, right: Any) -> Any:
        def check_epoch(partition: Partition, epoch: int) -> None:
            try:
                right(partition, epoch)
            except KafkaError as error:
                is_old = error.code == ErrorCode.FENCED_LEADER_EPOCH
                self.reached["old leader epoch refused" if is_old else "unknown leader epoch refused"] += 1
                raise

        return check_epoch

    def _check_epochs(self, right: Any) -> Any:
        def check_epochs(state: PartitionState, broker_id: int, wish: Any) -> None:
            self.reached["old leader's in-sync replicas refused"] += wish.leader_epoch < state.leader_epoch
            right(state, broker_id, wish)

        return check_epochs

    def _take(self, right: Any) -> Any:
        def take(plan: FetchPlan, fetched: Any, now: Any) -> Any:
            followed = plan._followed.get((fetched.topic_id, fetched.index))
            asked = followed.asked if followed is not None else None
            is_stale = followed is None or (asked is not None and asked.leader_epoch != followed.partition.leader_epoch)
            self.reached["stale answer after an epoch change"] += is_stale
            return right(plan, fetched, now)

        return take

    def _heard(self, right: Any) -> Any:
        def heard(raft: Raft, outgoing: Any, reply: Any, now: Any) -> None:
            self.reached["stale answer after an epoch change"] += outgoing.request.epoch < raft.epoch
            right(raft, outgoing, reply, now)

        return heard

    def _asked(self, right: Any) -> Any:
        def asked(raft: Raft, request: Any, now: Any) -> Any:
            self.reached["stale request after an epoch change"] += 0 <= request.epoch < raft.epoch
            return right(raft, request, now)

        return asked

    def _upgrade(self, right: Any) -> Any:
        def upgrade(classic: Any, *arguments: Any) -> Any:
            self.reached["classic group became a consumer group"] += bool(classic.members)
            return right(classic, *arguments)

        return upgrade

    def _downgrade(self, right: Any) -> Any:
        def downgrade(*arguments: Any) -> Any:
            self.reached["consumer group became a classic group"] += 1
            return right(*arguments)

        return downgrade

    def _load_latest_snapshot(self, right: Any) -> Any:
        def load_latest_snapshot(journal: Journal, tell: Any) -> None:
            right(journal, tell)
            self.reached["snapshot loaded at start"] += journal._to_load is not None

        return load_latest_snapshot

    def _cut_where_it_parts(self, right: Any) -> Any:
        def cut_where_it_parts(journal: Journal, *arguments: Any) -> None:
            end = journal.end_offset
            right(journal, *arguments)
            self.reached["metadata log cut where it parted"] += journal.end_offset < end

        return cut_where_it_parts
