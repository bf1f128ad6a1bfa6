"""Somebody who is no node, and sends nodes what only nodes say to one another: forged, or as it was once really sent.

He knows who votes, the ids of their directories, and the epoch: any client can find that out. He claims epochs that are
old, next, far, and beyond all reach, in the names of voters and of strangers, in every version, and repeats real
requests of earlier (F8). Answers he does not hear. He fetches in nobody's name who votes with that directory: such a
fetch is refused before the quorum hears of it (tests/node/test_strangers.py).

His requests take no way through the network, so that a run with him has the same weather as the one without.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from klamm.handlers.quorum_messages import to_wire
from klamm.ids import BrokerId
from klamm.node.events import Closed, Opened, Received
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    LogPosition,
    Outgoing,
    QuorumFetch,
    Request,
    SnapshotFetch,
    SnapshotId,
    VoteRequest,
)
from klamm.quorum.raft import Raft
from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.network import frames_of
from klamm.sim.world import World
from klamm.wire.apis import API_BY_KEY
from klamm.wire.frames import encoded_request

FORGED = "forged request"
STRANGER = 77
KEPT = 200
REPEATED, POSED = 0.3, 0.1
FAR = 1 << 40
ELSEWHERE = Address("elsewhere", 9)
HEARD = ("vote", "begin_quorum_epoch", "end_quorum_epoch")
KINDS = ("vote", "vote", "vote", "begin", "begin", "end", "fetch", "snapshot")

Sent: TypeAlias = tuple[BrokerId, Request]


class Forger:
    def __init__(self, world: World, cluster: Cluster, *, voters_change: bool) -> None:
        self._world = world
        self._cluster = cluster
        self._chance = world.chance("forger")
        self._voters_change = voters_change
        """Then an operator adds whoever fetches under the number of a voter that was: nobody must fetch so for fun."""
        self._sent: deque[Sent] = deque(maxlen=KEPT)
        self._is_forging = False

    def strike(self) -> bool:
        """Whether somebody was there to hear it."""
        machines = [each for each in self._cluster.running if each.takes_connections and not each.is_paused]
        if not machines:
            return False
        leaders = [each for each in machines if each.broker.quorum.is_leader]
        if leaders and not self._voters_change and self._chance.random() < POSED:
            self._send(leaders[0], self._posing(leaders[0]))
            return True
        machine = self._chance.choice(machines)
        old = [request for node_id, request in self._sent if node_id == machine.node_id]
        is_old = bool(old) and self._chance.random() < REPEATED
        self._send(machine, self._chance.choice(old) if is_old else self._drawn(machine))
        return True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While this lasts, he notes what nodes really ask of one another."""
        before = {name: Raft.__dict__[name] for name in HEARD}
        for name, right in before.items():
            setattr(Raft, name, self._noting(right))
        try:
            yield
        finally:
            for name, right in before.items():
                setattr(Raft, name, right)

    def _noting(self, right: Callable[..., Any]) -> Callable[..., Any]:
        def noting(raft: Raft, request: Request, now: Any) -> Any:
            if not self._is_forging:
                self._sent.append((raft.node_id, request))
            return right(raft, request, now)

        return noting

    def _send(self, machine: Machine, request: Request) -> None:
        key, _, message = to_wire(Outgoing(machine.node_id, "", 0, request, 0.0))
        api = API_BY_KEY[key]
        version = self._chance.randint(api.min_version, api.max_version)
        if isinstance(request, QuorumFetch):
            version = api.max_version
        frame = b"".join(bytes(piece) for piece in encoded_request(api, version, 1, "forger", message))
        self._world.tell(f"forged for {machine.name}, version {version}: {request}")
        connection = machine.accept()
        self._is_forging = True
        try:
            for event in (Opened(connection, "forger:1"), Received(connection, frames_of(frame)), Closed(connection)):
                machine.hear(event)
        finally:
            self._is_forging = False

    def _drawn(self, machine: Machine) -> Request:
        chance, raft = self._chance, machine.broker.quorum
        epoch = chance.choice((0, raft.epoch, raft.epoch, raft.epoch + 1, raft.epoch + 1, raft.epoch + 5))
        epoch = chance.choice((epoch, epoch, epoch, raft.epoch + 500, 2**31 - 2, 2**31 - 1))
        cluster_id = chance.choice((None, raft.cluster_id))
        asked = chance.choice((ReplicaKey(-1), ReplicaKey(machine.node_id), key_of(machine)))
        name, place = self._name(), chance.choice((None, ELSEWHERE))
        kind = chance.choice(KINDS)
        if kind == "vote":
            log = LogPosition(
                chance.choice((0, max(epoch - 1, 0), epoch)), chance.choice((0, raft.high_watermark, FAR))
            )
            return VoteRequest(cluster_id, asked, name, epoch, log, chance.random() < 0.3)
        if kind == "begin":
            return BeginEpoch(cluster_id, asked, name.node_id, epoch, place)
        if kind == "end":
            return EndEpoch(cluster_id, name.node_id, epoch, [self._name()] * chance.choice((0, 1, 3)), place)
        replica = ReplicaKey(chance.choice((STRANGER, machine.node_id)), chance.randbytes(16))
        position = raft.log.end_offset
        if kind == "snapshot":
            return SnapshotFetch(cluster_id, replica, epoch, SnapshotId(chance.choice((0, position)), epoch), 0, 1_000)
        offset, last_epoch = chance.choice((0, position, position, FAR)), chance.choice((0, raft.log.latest_epoch))
        return QuorumFetch(cluster_id, replica, epoch, offset, last_epoch, 0, 1_000, 0)

    def _posing(self, leader: Machine) -> Request:
        """As a voter that lost its disk, and one that is away if possible, or as the leader itself; with everything
        that is committed."""
        raft = leader.broker.quorum
        away = [each for each in self._cluster.voters if not self._cluster.machines[each].is_running]
        number = self._chance.choice(away or self._cluster.voters)
        replica = ReplicaKey(number, bytes(14) + bytes((77, number)))
        return QuorumFetch(None, replica, raft.epoch, raft.log.end_offset, raft.log.latest_epoch, 0, 1_000, 0)

    def _name(self) -> ReplicaKey:
        machine = self._cluster.machines[self._chance.choice(self._cluster.voters)]
        known = [key_of(machine)] if machine.is_running else []
        return self._chance.choice((ReplicaKey(STRANGER, bytes(15) + b"7"), ReplicaKey(machine.node_id), *known))


def key_of(machine: Machine) -> ReplicaKey:
    return ReplicaKey(machine.node_id, machine.broker.quorum.directory_id)
