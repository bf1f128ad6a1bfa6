"""The metadata quorum: one leader an epoch, one vote an epoch, epochs that only grow, and what is committed stays.

I1 to I7. A vote and an epoch count as soon as they can have been told; a disk that was replaced begins anew.
"""

from collections.abc import Callable
from typing import TypeAlias
from zlib import crc32

from klamm.ids import ZERO_UUID, BrokerId, Epoch, Offset
from klamm.quorum.voters import Voters
from klamm.records.batch import batches
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

AT_ONCE_BYTES = 1 << 20
NOT_KNOWN = -1

DiskName: TypeAlias = tuple[BrokerId, int]
"""A node, and the how-manieth disk it has."""


class QuorumChecker:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._leaders: dict[Epoch, BrokerId] = {}
        self._votes: dict[tuple[DiskName, Epoch], BrokerId] = {}
        self._epochs: dict[DiskName, Epoch] = {}
        self._watermarks: dict[tuple[DiskName, int], Offset] = {}
        self.committed: dict[Offset, int] = {}
        """The checksum of every committed batch, by its offset."""
        self.on_committed: Callable[[bytes], None] = lambda batch: None
        """Called with each of them once."""

    def after_step(self, machine: Machine) -> None:
        raft = machine.broker.quorum
        disk = (machine.node_id, machine.disks)
        epoch = raft.epoch
        if epoch < self._epochs.get(disk, -1):
            broken("I2", f"{machine.name} went back from quorum epoch {self._epochs[disk]} to {epoch}")
        self._epochs[disk] = epoch
        if raft.is_leader:
            leader = self._leaders.setdefault(epoch, machine.node_id)
            if leader != machine.node_id:
                broken("I1", f"{machine.name} and node-{leader} both lead the quorum in epoch {epoch}")
        voted = raft.voted_id
        if voted >= 0 and self._votes.setdefault((disk, epoch), voted) != voted:
            broken("I3", f"{machine.name} voted for {self._votes[disk, epoch]} and {voted} in epoch {epoch}")
        self._look_at_watermark(machine)

    def _look_at_watermark(self, machine: Machine) -> None:
        raft = machine.broker.quorum
        life = ((machine.node_id, machine.disks), machine.lives)
        before, now = self._watermarks.get(life, 0), raft.high_watermark
        if now < before:
            broken("I4", f"{machine.name}'s committed metadata went back from {before} to {now}")
        if now == before:
            return
        self._watermarks[life] = now
        if raft.is_leader:
            self._a_majority_has(now, machine)
        self._compare(machine, max(before, raft.log.start_offset), now)

    def _a_majority_has(self, offset: Offset, leader: Machine) -> None:
        """Of those who voted when it was committed. One more change may be in the log since. A voter whose disk was
        replaced after it acknowledged counts: under its new disk it is no voter, so the old one cannot be outvoted."""
        journal = leader.broker.quorum._journal
        sets = (journal.voters.latest, journal.voters.as_of(offset))
        have = [
            node_id
            for node_id in sorted({*sets[0], *sets[1]})
            if (machine := self._cluster.machines[node_id]).node is None
            or machine.broker.quorum.log.end_offset >= offset
            or _is_another_disk(machine, sets[0])
        ]
        if all(2 * len(set(have) & set(voters)) <= len(voters) for voters in sets):
            broken("I5", f"{leader.name} calls {offset} committed, which only {have} of {list(sets[0])} may have")

    def _compare(self, machine: Machine, start: Offset, end: Offset) -> None:
        """What this node calls committed is what everybody does."""
        log = machine.broker.quorum.log
        while start < end:
            found = log.read(start, AT_ONCE_BYTES, end, at_least_one=True)
            data = b"".join(bytes(region) for region in found.regions)
            if not data:
                return
            for position, batch in batches(data):
                raw = data[position : position + 12 + batch.length]
                checksum = crc32(raw)
                known = self.committed.setdefault(batch.base_offset, NOT_KNOWN)
                if known == NOT_KNOWN:
                    self.committed[batch.base_offset] = checksum
                    if not batch.is_control:
                        self.on_committed(raw)
                elif known != checksum:
                    broken("I7", f"{machine.name} has other committed metadata at {batch.base_offset} than others")
                start = batch.base_offset + batch.last_offset_delta + 1

    def at_end(self) -> None:
        """Everybody who has caught up knows the same cluster."""
        images = [(machine, machine.broker.image) for machine in self._cluster.running]
        by_offset: dict[Offset, tuple[Machine, object]] = {}
        for machine, image in images:
            other, known = by_offset.setdefault(image.offset, (machine, image))
            if known != image:
                broken("I10", f"{machine.name} and {other.name} know different clusters at {image.offset}")


def _is_another_disk(machine: Machine, voters: Voters) -> bool:
    """Whether the voter that is counted is a disk this machine no longer has."""
    counted = voters.get(machine.node_id)
    own = machine.broker.quorum._me.identity.directory_id
    return counted is not None and counted.directory_id not in (ZERO_UUID, own)
