"""Replication: one leader an epoch takes writes, only those who may be elected are, and what is committed stays.

I11, I12, I14, I15, I19. Committed is what a leader's watermark has passed: from then on every leader has it.
"""

from typing import NamedTuple

from klamm.ids import NO_BROKER, BrokerId, Epoch, Offset, Uuid
from klamm.metadata.image import Image
from klamm.partition.partition import Partition
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

Key = tuple[Uuid, int]


class Committed(NamedTuple):
    """How far a partition is committed, the epoch of the last batch below that, and that of the leader who found so."""

    offset: Offset
    epoch: Epoch
    leader_epoch: Epoch


NOTHING = Committed(0, -1, -1)


class ReplicationChecker:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._leaders: dict[tuple[Uuid, int, Epoch], tuple[BrokerId, int]] = {}
        self.committed: dict[Key, Committed] = {}
        self._watermarks: dict[tuple[int, int, Uuid, int, Epoch], Offset] = {}
        self._known: dict[Partition, tuple[Epoch, Offset]] = {}
        """What was looked at already: most steps change little."""
        self._image: Image | None = None
        self.unclean: set[Key] = set()
        """Partitions that may lose something: somebody asked for an unclean election."""
        self.unheard = 0
        """How often a watermark moved while the controller had let somebody in, and its leader did not know."""

    def after_step(self, machine: Machine) -> None:
        broker = machine.broker
        for partition in broker.partitions.in_any_order():
            if partition.leading is not None:
                self._look_at_leader(machine, partition)
        image = broker.image
        if broker.controller is not None and image is not self._image:
            self._look_at_elections(image)

    def _look_at_leader(self, machine: Machine, partition: Partition) -> None:
        assert partition.leading is not None
        now = (partition.leading.epoch, partition.high_watermark)
        if self._known.get(partition) == now:
            return
        self._known[partition] = now
        key = (partition.topic_id, partition.topic_partition.partition)
        epoch = partition.leading.epoch
        who = (machine.node_id, machine.lives)
        known = self._leaders.setdefault((*key, epoch), who)
        if known[0] != machine.node_id:
            broken("I11", f"{machine.name} and node-{known[0]} both lead {partition} in epoch {epoch}")
        place = (machine.node_id, machine.lives, *key, epoch)
        before = self._watermarks.get(place)
        if before is None:
            self._has_what_is_committed(machine, partition, key)
        watermark = partition.high_watermark
        if watermark == before:
            return
        if before is not None and watermark < before:
            broken("I14", f"{machine.name}'s watermark of {partition} went back from {before} to {watermark}")
        self._watermarks[place] = watermark
        if before is not None and watermark > before:
            self._in_sync_have(machine, partition, watermark)
        if watermark > self.committed.get(key, NOTHING).offset:
            self.committed[key] = Committed(watermark, partition.log.epochs.epoch_at(watermark - 1), epoch)

    def _has_what_is_committed(self, machine: Machine, partition: Partition, key: Key) -> None:
        committed, epoch, leaders = self.committed.get(key, NOTHING)
        if key in self.unclean or committed <= partition.log.start_offset:
            return
        if partition.leader_epoch < leaders:
            # It hears late that it leads, when others have led since: nobody follows it.
            return
        _, end = partition.log.end_offset_for_epoch(epoch)
        if min(end, partition.log.end_offset) < committed:
            broken(
                "I15",
                f"{machine.name} leads {partition} from epoch {partition.leader_epoch} on and has epoch {epoch} only "
                f"up to {end}; committed was {committed}",
            )

    def _in_sync_have(self, machine: Machine, partition: Partition, watermark: Offset) -> None:
        granted = self._granted(machine, partition)
        self.unheard += not set(granted) <= set(partition.in_sync)
        for node_id in sorted({*partition.in_sync, *granted}):
            other = self._cluster.machines[node_id]
            if not other.is_running or not other.broker.is_open or other.has_forgotten:
                # One that has lost what it had was in sync when it had it. A leader that was paused hears of both late.
                continue
            replica = other.broker.partitions.get(partition.topic_partition.topic, partition.topic_partition.partition)
            if replica is None or replica.topic_id != partition.topic_id or replica.failure is not None:
                continue
            if replica.log.end_offset < watermark and replica.leader_epoch <= partition.leader_epoch:
                broken(
                    "I14",
                    f"{machine.name} calls {partition} committed up to {watermark}, and {other.name}, which is in "
                    f"sync, ends at {replica.log.end_offset}",
                )

    def _granted(self, machine: Machine, partition: Partition) -> tuple[BrokerId, ...]:
        """Those in sync by a decision of the controller that the leader has not heard of: any of them may be the next
        (KIP-497). A leader that was answered may also know more than any image."""
        place = partition.topic_partition
        topic = self._cluster.latest_image().topics.get(place.topic)
        if topic is None or topic.topic_id != partition.topic_id or place.partition >= len(topic.partitions):
            return ()
        state = topic.partitions[place.partition]
        is_its_own = state.leader == machine.node_id and state.leader_epoch == partition.leader_epoch
        return state.isr if is_its_own and state.partition_epoch > partition.partition_epoch else ()

    def _look_at_elections(self, image: Image) -> None:
        before, self._image = self._image, image
        if before is None or image.offset < before.offset:
            return
        for name, topic in image.topics.items():
            old = before.topics.get(name)
            if old is topic or old is None or old.topic_id != topic.topic_id:
                continue
            for index, state in enumerate(topic.partitions):
                if index >= len(old.partitions) or state is old.partitions[index]:
                    continue
                was = old.partitions[index]
                if not set(state.isr) <= set(state.replicas):
                    broken("I12", f"{name}-{index}: in sync {state.isr} of replicas {state.replicas}")
                if state.leader_epoch < was.leader_epoch:
                    broken("I12", f"{name}-{index}: leader epoch went back from {was.leader_epoch}")
                if state.leader in (was.leader, NO_BROKER):
                    continue
                may = {*was.isr, *was.elr, *was.last_known_elr, *state.isr}
                if state.leader not in may and (topic.topic_id, index) not in self.unclean:
                    broken(
                        "I12", f"{name}-{index}: {state.leader} was elected, in sync were {was.isr}, eligible {was.elr}"
                    )
