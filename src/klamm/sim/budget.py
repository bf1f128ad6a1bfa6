"""How much may be lost at once without breaking what is promised.

A record that is committed is on every replica in sync, and with `min.insync.replicas=2` on two at least. So one machine
at a time may lose what it has not flushed, or its disk, and the next one only after that one has everything again; and
only while another one that is in sync, or eligible, has everything. The metadata is always flushed; of the quorum a
minority may lose its disks.
"""

from klamm.ids import BrokerId, Offset, Uuid
from klamm.metadata.image import PartitionState, Topic
from klamm.sim.checkers.replication import ReplicationChecker
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine


class Budget:
    def __init__(self, cluster: Cluster, replication: ReplicationChecker, flushed_topics: frozenset[str]) -> None:
        self._cluster = cluster
        self._replication = replication
        self._flushed = flushed_topics

    def may_forget(self, machine: Machine) -> bool:
        """Whether this machine may lose what it has not flushed."""
        return self._nobody_else_has_forgotten(machine) and self._others_have_everything(machine, spare=self._flushed)

    def may_wipe(self, machine: Machine) -> bool:
        """Whether its whole disk may be lost, which is harder: the quorum has to do without it as well."""
        voters = self._cluster.voters
        if machine.node_id in voters:
            well = [node_id for node_id in voters if node_id != machine.node_id and self._votes_well(node_id)]
            if 2 * len(well) <= len(voters):
                return False
        return self._nobody_else_has_forgotten(machine) and self._others_have_everything(machine, spare=frozenset())

    def _nobody_else_has_forgotten(self, machine: Machine) -> bool:
        image = self._cluster.latest_image()
        for other in self._cluster.machines.values():
            if other.has_forgotten and other.is_serving:
                states = [state for topic in image.topics.values() for state in topic.partitions]
                mine = [state for state in states if other.node_id in state.replicas]
                other.has_forgotten = not all(other.node_id in state.isr for state in mine)
        return not any(other.has_forgotten for other in self._cluster.machines.values() if other is not machine)

    def _votes_well(self, node_id: BrokerId) -> bool:
        """It runs and has all that is committed."""
        machine = self._cluster.machines[node_id]
        if not machine.is_running or machine.is_paused:
            return False
        best = max(each.broker.quorum.high_watermark for each in self._cluster.running)
        quorum = machine.broker.quorum
        return quorum.is_voter and quorum.log.end_offset >= best and quorum.leader_id >= 0

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
        committed = self._replication.committed.get((topic.topic_id, index), (0, -1))
        eligible = {*state.isr, *state.elr} - {machine.node_id}
        return any(self._has(node_id, topic.name, topic.topic_id, index, committed) for node_id in sorted(eligible))

    def _has(self, node_id: BrokerId, topic: str, topic_id: Uuid, index: int, committed: tuple[Offset, int]) -> bool:
        machine = self._cluster.machines[node_id]
        if not machine.is_running or not machine.broker.is_open:
            return False
        partition = machine.broker.partitions.get(topic, index)
        if partition is None or partition.topic_id != topic_id or partition.failure is not None:
            return committed[0] == 0
        _, end = partition.log.end_offset_for_epoch(committed[1])
        return committed[0] == 0 or min(end, partition.log.end_offset) >= committed[0]
