"""How much may be lost at once without breaking what is promised.

A record that is committed is on every replica in sync, and with `min.insync.replicas=2` on two at least. So one machine
at a time may lose what it has not flushed, or its disk, and the next one only after that one has everything again; and
only while another one that is in sync, or eligible, has everything, whether or not its process runs. The metadata is
always flushed; of the quorum a minority may lose its disks.

A blackout takes the power of all machines at once. What was acknowledged by topics with `flush.messages=1` has to be
there afterwards; of all others anything may be gone.
"""

from klamm.ids import BrokerId, Uuid
from klamm.metadata.image import PartitionState, Topic
from klamm.sim.checkers.replication import NOTHING, Committed, ReplicationChecker
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine


class Budget:
    def __init__(
        self, cluster: Cluster, replication: ReplicationChecker, flushed_topics: frozenset[str], *, voters_leave: bool
    ) -> None:
        self._cluster = cluster
        self._replication = replication
        self._flushed = flushed_topics
        self._voters_leave = voters_leave
        """Whether somebody takes voters out."""

    def may_forget(self, machine: Machine) -> bool:
        """Whether this machine may lose what it has not flushed."""
        return self._nobody_else_has_forgotten(machine) and self._others_have_everything(machine, spare=self._flushed)

    def may_rot(self, machine: Machine) -> bool:
        """Whether its logs may be damaged, flushed or not."""
        return self._nobody_else_has_forgotten(machine) and self._others_have_everything(machine, spare=frozenset())

    def may_black_out(self) -> bool:
        """Whether all machines may lose what they have not flushed. A disk that is lost besides may be the last known
        leader's, and then nobody dares to lead."""
        return self._nobody_else_has_forgotten(None)

    def may_wipe(self, machine: Machine) -> bool:
        """Whether its whole disk may be lost, which is harder: the quorum has to do without it as well."""
        return self._others_can_vote(machine) and self.may_rot(machine)

    def _others_can_vote(self, machine: Machine) -> bool:
        """Whether the quorum goes on without it, also if one of the others is taken out before it is back: who asks for
        that cannot know yet."""
        sets = self._cluster.voter_sets()
        if machine.node_id not in self._cluster.voters:
            return True
        for voters in sets:
            well = sum(node_id != machine.node_id and self._cluster.votes_well(node_id) for node_id in voters)
            if 2 * (well - self._voters_leave) <= len(voters) - self._voters_leave:
                return False
        return bool(sets)

    def _nobody_else_has_forgotten(self, machine: Machine | None) -> bool:
        image = self._cluster.latest_image()
        for other in self._cluster.machines.values():
            if other.has_forgotten and other.is_serving and not other.is_failing:
                states = [state for topic in image.topics.values() for state in topic.partitions]
                mine = [state for state in states if other.node_id in state.replicas]
                other.has_forgotten = not all(other.node_id in state.isr for state in mine)
        return not any(other.has_forgotten for other in self._cluster.machines.values() if other is not machine)

    def _others_have_everything(self, machine: Machine, spare: frozenset[str]) -> bool:
        image = self._cluster.latest_image()
        return all(
            name in spare or self._another_has_it(topic, index, state, machine)
            for name, topic in image.topics.items()
            for index, state in enumerate(topic.partitions)
        )

    def _another_has_it(self, topic: Topic, index: int, state: PartitionState, machine: Machine) -> bool:
        if (topic.topic_id, index) in self._replication.unclean:
            return True
        committed = self._replication.committed.get((topic.topic_id, index), NOTHING)
        eligible = {*state.isr, *state.elr} - {machine.node_id}
        return any(self._has(node_id, topic.name, topic.topic_id, index, committed) for node_id in sorted(eligible))

    def _has(self, node_id: BrokerId, topic: str, topic_id: Uuid, index: int, committed: Committed) -> bool:
        machine = self._cluster.machines[node_id]
        broker = machine.broker if machine.is_running else None if machine.has_forgotten else machine.last_broker
        if broker is None or not broker.is_open:
            return False
        partition = broker.partitions.get(topic, index)
        if partition is None or partition.topic_id != topic_id or partition.failure is not None:
            return committed.offset == 0
        _, end = partition.log.end_offset_for_epoch(committed.epoch)
        return committed.offset == 0 or min(end, partition.log.end_offset) >= committed.offset
