"""Somebody who sends nodes of a quorum whatever requests he likes, and repeats old ones. He hears no answer.

No fetches in the names of voters: who sends those is not shown, so what they say is believed.
"""

from random import Random

from klamm.ids import BrokerId
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    LogPosition,
    QuorumFetch,
    Request,
    SnapshotFetch,
    SnapshotId,
    VoteRequest,
)
from tests.quorum.world import CLUSTER, World

FAR = 1 << 40


class Forger:
    def __init__(self, world: World, random: Random) -> None:
        self.random = random
        self._world = world

    def forge(self, times: int) -> None:
        alive = [node for node in self._world.nodes.values() if node.raft is not None]
        for _ in range(times if alive else 0):
            target = self.random.choice(alive)
            if target.raft is None:
                continue
            old = self._old(target.node_id) if self.random.random() < 0.3 else None
            request = old or self._drawn(target.node_id, target.alive.epoch)
            self._world.tell(f"forged for {target.node_id}: {request}")
            self._world._asked(target, request, lambda reply: None)
            self._world.settle(target)

    def _old(self, target: BrokerId) -> Request | None:
        """Something that was really sent to this node."""
        kinds = VoteRequest | BeginEpoch | EndEpoch
        sent = [each.request for each in self._world.sent if each.to == target and isinstance(each.request, kinds)]
        return self.random.choice(sent) if sent else None

    def _drawn(self, target: BrokerId, epoch: int) -> Request:
        random = self.random
        name = self._name()
        epoch = random.choice([0, epoch, epoch, epoch + 1, epoch + 1, epoch + 5, epoch + 500, 2**31 - 2, 2**31 - 1])
        cluster = random.choice([None, CLUSTER])
        here = random.choice([ReplicaKey(-1), ReplicaKey(target), self._key(target)])
        place = random.choice([None, Address("elsewhere", 9)])
        kind = random.choice(["vote", "vote", "vote", "begin", "begin", "end", "fetch", "snapshot"])
        if kind == "vote":
            log = LogPosition(random.choice([0, max(epoch - 1, 0), epoch]), random.choice([0, 3, FAR]))
            return VoteRequest(cluster, here, name, epoch, log, random.random() < 0.3)
        if kind == "begin":
            return BeginEpoch(cluster, here, name.node_id, epoch, place)
        if kind == "end":
            return EndEpoch(cluster, name.node_id, epoch, [self._name()] * random.choice([0, 1, 2]), place)
        unknown = ReplicaKey(random.choice([target, 77, -2]), random.randbytes(16))
        if kind == "fetch":
            return QuorumFetch(
                cluster, unknown, epoch, random.choice([0, 3, FAR]), random.choice([0, epoch]), 0, 100, 0
            )
        return SnapshotFetch(cluster, unknown, epoch, SnapshotId(random.choice([0, 3]), epoch), 0, 100)

    def _name(self) -> ReplicaKey:
        voter = self.random.choice(list(self._world.nodes))
        return self.random.choice([ReplicaKey(77, bytes(15) + b"1"), ReplicaKey(voter), self._key(voter)])

    def _key(self, node_id: BrokerId) -> ReplicaKey:
        return ReplicaKey(node_id, self._world.nodes[node_id].directory_id)
