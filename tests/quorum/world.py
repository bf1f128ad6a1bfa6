"""A small world for the quorum: nodes on disks that forget, a network that loses, delays, doubles and cuts, one clock.

Everything is drawn from a seed and happens in one queue of events. `checks.py` looks on after every one of them. A
fetch that finds nothing new waits, as a handler would have it wait. Connections to a dead process are refused, and a
node that notices tells its quorum (`node_is_gone`), unless the network is cut between them.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from klamm.config import BrokerConfig
from klamm.errors import KafkaError
from klamm.facts import Fact
from klamm.ids import BrokerId, Now, drawn_uuid
from klamm.log.files import DiskFailed
from klamm.metadata.records import MetadataRecord, TopicRecord
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.messages import (
    BeginEpoch,
    EndEpoch,
    Outgoing,
    QuorumFetch,
    ReplyValue,
    Request,
    SnapshotFetch,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.raft import Raft
from klamm.quorum.ready import CommittedBatch, Flush, Ready
from klamm.quorum.voters import Voter, Voters
from klamm.sim.disk import Disk

CLUSTER = "a-cluster"
WALL_MS = 1_700_000_000_000
TIMEOUTS = {
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.election.backoff.max.ms": "200",
}


@dataclass
class Weather:
    """How bad the network and the disks are."""

    loss: float = 0.0
    doubling: float = 0.0
    delay_ms: float = 1.0
    flush_ms: float = 1.0
    notices_death: float = 1.0
    """How likely it is that a refused connection is noticed as the end of a process."""


@dataclass
class Node:
    node_id: BrokerId
    is_controller: bool
    disk: Disk
    directory_id: bytes
    raft: Raft | None = None
    life: int = 0
    recovery_point: int = 0
    survived_end: int = 0
    """What was found after the last crash is on the disk, even before it has been flushed once more."""
    applied: list[MetadataRecord] = field(default_factory=list)
    applied_end: int = 0
    applied_epoch: int = 0
    facts: list[Fact] = field(default_factory=list)
    waiting: list[tuple[QuorumFetch, Callable[[ReplyValue], None], float]] = field(default_factory=list)
    flushing: bool = False
    on_death: dict[int, Callable[[], None]] = field(default_factory=dict)
    """What becomes of the connections to it."""
    wake_ms: float | None = None

    @property
    def alive(self) -> Raft:
        assert self.raft is not None
        return self.raft


class World:
    def __init__(
        self,
        seed: int = 0,
        voters: int = 3,
        observers: int = 0,
        weather: Weather | None = None,
        properties: dict[str, str] | None = None,
    ) -> None:
        self.random = Random(seed)
        self.weather = weather or Weather()
        self.now_ms = 0.0
        self.properties = {**TIMEOUTS, **(properties or {})}
        self.configured = Voters.configured((each, f"host-{each}", 9090) for each in range(voters))
        self.nodes = {each: self._new_node(each, each < voters) for each in range(voters + observers)}
        self.cut: set[tuple[BrokerId, BrokerId]] = set()
        self.on_ready: Callable[[Node, Ready], None] = lambda node, ready: None
        self.on_vote: Callable[[Node, VoteRequest, VoteReply], None] = lambda node, request, reply: None
        self.after_event: Callable[[], None] = lambda: None
        self.story: list[str] = []
        self.sent: list[Outgoing] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._proposals = count(1)

    def _new_node(self, node_id: BrokerId, is_controller: bool) -> Node:
        return Node(node_id, is_controller, Disk(), drawn_uuid(self.random))

    # What a test does to it.

    @property
    def now(self) -> Now:
        return Now(self.now_ms, WALL_MS + int(self.now_ms))

    def start(self, *node_ids: BrokerId) -> None:
        for node_id in node_ids or sorted(self.nodes):
            node = self.nodes[node_id]
            assert node.raft is None
            config = BrokerConfig.from_properties([], {"node.id": str(node_id), **self.properties})
            node.facts = []
            node.raft = Raft.open(
                config,
                NodeIdentity(node_id, node.directory_id, CLUSTER),
                self.configured,
                node.disk,
                Random(self.random.random()),
                self.now,
                clean=False,
                recovery_point=node.recovery_point,
                is_voter_role=node.is_controller,
                tell=node.facts.append,
            )
            node.survived_end = node.raft.log.end_offset
            node.applied, node.applied_end, node.applied_epoch = [], 0, 0
            node.raft.start(self.now)
            self.tell(f"{node_id} starts: {node.raft}")
            self.settle(node)

    def kill(self, node_id: BrokerId) -> None:
        """It forgets what was not flushed. Whoever waits for it hears that the connection is closed."""
        node = self.nodes[node_id]
        node.raft = None
        node.life += 1
        node.disk.crash(self.random)
        node.waiting, node.flushing, node.wake_ms = [], False, None
        closing, node.on_death = node.on_death, {}
        for close in closing.values():
            close()
        self.tell(f"{node_id} is killed")

    def wipe(self, node_id: BrokerId) -> None:
        """Its disk is replaced by an empty one."""
        node = self.nodes[node_id]
        if node.raft is not None:
            self.kill(node_id)
        node.disk = Disk()
        node.directory_id = drawn_uuid(self.random)
        node.recovery_point = 0
        self.tell(f"{node_id} lost its disk")

    def isolate(self, node_id: BrokerId) -> None:
        self.cut |= {pair for other in self.nodes for pair in ((node_id, other), (other, node_id))}

    def heal(self) -> None:
        self.cut.clear()

    def propose(self, node_id: BrokerId) -> TopicRecord:
        number = next(self._proposals)
        record = TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))
        node = self.nodes[node_id]
        node.alive.propose([record], self.now)
        self.settle(node)
        return record

    def take_snapshot(self, node_id: BrokerId) -> None:
        """Of what the node applied: in this world, all records there were."""
        node = self.nodes[node_id]
        node.alive.take_snapshot(list(node.applied), node.applied_end - 1, node.applied_epoch, self.now)
        self.settle(node)

    def add_voter(self, leader_id: BrokerId, node_id: BrokerId) -> int:
        node = self.nodes[node_id]
        voter = Voter(node_id, node.directory_id, f"host-{node_id}", 9090)
        offset = self.nodes[leader_id].alive.add_voter(voter, self.now)
        self.settle(self.nodes[leader_id])
        return offset

    def leader(self) -> Node | None:
        """The active leader of the latest epoch."""
        leaders = [node for node in self.nodes.values() if node.raft is not None and node.raft.is_active_leader]
        return max(leaders, key=lambda node: node.alive.epoch, default=None)

    # Time.

    def run(self, for_ms: float, until: Callable[[], bool] = lambda: False) -> float:
        """Let time pass; how much it took until the condition held."""
        began_ms, end_ms = self.now_ms, self.now_ms + for_ms
        while not until():
            if not self._events or self._events[0][0] > end_ms:
                self.now_ms = end_ms
                break
            self.now_ms, _, act = heappop(self._events)
            act()
            self.after_event()
        return self.now_ms - began_ms

    def later(self, delay_ms: float, act: Callable[[], None]) -> None:
        heappush(self._events, (self.now_ms + delay_ms, next(self._order), act))

    def drawn_ms(self, mean_ms: float) -> float:
        return min(self.random.expovariate(1 / mean_ms), 20 * mean_ms) if mean_ms else 0.0

    def tell(self, what: str) -> None:
        self.story.append(f"{self.now_ms:9.1f} {what}")

    # A node's step.

    def settle(self, node: Node) -> None:
        """Do what the quorum asks for, then look whether somebody's wait is over and when to wake up."""
        while ready := node.alive.ready():
            self.on_ready(node, ready)
            if ready.checkpoint:
                node.survived_end = 0
            if ready.checkpoint or self.random.random() < 0.1:
                node.recovery_point = node.alive.log.recovery_point
            if ready.flush is not None:
                self._flush(node, ready.flush)
            for outgoing in ready.requests:
                self._send(node, outgoing)
            if ready.snapshot is not None:
                node.applied = list(ready.snapshot.records)
                node.applied_end, node.applied_epoch = ready.snapshot.offset + 1, ready.snapshot.epoch
            for batch in ready.committed:
                self._apply(node, batch)
        self._answer_waiting(node)
        due_ms = node.alive.next_deadline_ms
        if due_ms is not None and (node.wake_ms is None or due_ms < node.wake_ms):
            node.wake_ms = due_ms
            self._wake_at(node, node.life, due_ms)

    def _apply(self, node: Node, batch: CommittedBatch) -> None:
        assert batch.base_offset == node.applied_end, "nothing is left out"
        node.applied += batch.records
        node.applied_end, node.applied_epoch = batch.last_offset + 1, batch.epoch

    def _wake_at(self, node: Node, life: int, due_ms: float) -> None:
        def wake() -> None:
            if node.life == life and node.raft is not None:
                if node.wake_ms == due_ms:
                    node.wake_ms = None
                node.raft.tick(self.now)
                self.settle(node)

        self.later(max(due_ms - self.now_ms, 0.01), wake)

    def _flush(self, node: Node, flush: Flush) -> None:
        assert not node.flushing, "one flush at a time"
        node.flushing = True
        life = node.life

        def done() -> None:
            if node.life == life and node.raft is not None:
                node.flushing = False
                try:
                    node.disk.flush(flush.files)
                    node.raft.flushed(flush.up_to)
                except DiskFailed as error:
                    node.raft.flush_failed(str(error))
                self.settle(node)

        self.later(self.drawn_ms(self.weather.flush_ms), done)

    # The network.

    def _send(self, node: Node, outgoing: Outgoing) -> None:
        self.sent.append(outgoing)
        if outgoing.to not in self.nodes:
            # Whom somebody has made up.
            self.later(outgoing.timeout_ms, lambda: self._no_answer(node, node.life, outgoing))
            return
        life, target = node.life, self.nodes[outgoing.to]
        assert outgoing.host == f"host-{outgoing.to}"
        is_over = [False]

        def over(reply: ReplyValue | None, refused: bool = False) -> None:
            """The first answer counts; whatever comes later finds nobody waiting."""
            if is_over[0] or node.life != life or node.raft is None:
                return
            is_over[0] = True
            target.on_death.pop(id(outgoing), None)
            if reply is not None:
                node.raft.heard(outgoing, reply, self.now)
            else:
                node.raft.lost(outgoing, self.now)
                if refused and self.random.random() < self.weather.notices_death:
                    node.raft.node_is_gone(outgoing.to, self.now)
            self.settle(node)

        def back(reply: ReplyValue) -> None:
            for _ in range(self._copies(outgoing.to, node.node_id)):
                self.later(self.drawn_ms(self.weather.delay_ms), lambda: over(reply))

        target.on_death[id(outgoing)] = lambda: self._connection_closes(node, target, over)
        for _ in range(self._copies(node.node_id, outgoing.to)):
            self.later(self.drawn_ms(self.weather.delay_ms), lambda: self._deliver(node, target, outgoing, back, over))
        self.later(outgoing.timeout_ms, lambda: over(None))

    def _no_answer(self, node: Node, life: int, outgoing: Outgoing) -> None:
        if node.life == life and node.raft is not None:
            node.raft.lost(outgoing, self.now)
            self.settle(node)

    def _connection_closes(self, node: Node, target: Node, over: Callable[[None, bool], None]) -> None:
        """With the process at its other end, unless nobody can hear that."""
        if (target.node_id, node.node_id) not in self.cut:
            self.later(self.drawn_ms(self.weather.delay_ms), lambda: over(None, target.raft is None))

    def _copies(self, sender: BrokerId, receiver: BrokerId) -> int:
        if (sender, receiver) in self.cut or self.random.random() < self.weather.loss:
            return 0
        return 2 if self.random.random() < self.weather.doubling else 1

    def _deliver(
        self,
        sender: Node,
        target: Node,
        outgoing: Outgoing,
        back: Callable[[ReplyValue], None],
        over: Callable[[None, bool], None],
    ) -> None:
        if target.raft is None:
            over(None, True)
            return
        reply = self._asked(target, outgoing.request, back)
        self.settle(target)
        if reply is not None:
            back(reply)

    def _asked(self, node: Node, request: Request, back: Callable[[ReplyValue], None]) -> ReplyValue | None:
        raft = node.alive
        match request:
            case VoteRequest():
                reply = raft.vote(request, self.now)
                self.on_vote(node, request, reply)
                return reply
            case BeginEpoch():
                return raft.begin_quorum_epoch(request, self.now)
            case EndEpoch():
                return raft.end_quorum_epoch(request, self.now)
            case SnapshotFetch():
                return raft.fetch_snapshot(request, self.now)
            case QuorumFetch():
                fetched = raft.fetch(request, self.now)
                if fetched is None:
                    node.waiting.append((request, back, self.now_ms + request.max_wait_ms))
                    life = node.life
                    self.later(
                        request.max_wait_ms + 0.01, lambda: self._answer_waiting(node) if node.life == life else None
                    )
                return fetched

    def _answer_waiting(self, node: Node) -> None:
        if node.raft is None:
            return
        still = []
        for request, back, deadline_ms in node.waiting:
            if self.now_ms >= deadline_ms or node.raft.has_news(request):
                back(node.raft.fetched(request))
            else:
                still.append((request, back, deadline_ms))
        node.waiting = still

    def try_propose(self) -> None:
        """On whoever believes that it leads."""
        leaders = [node for node in self.nodes.values() if node.raft is not None and node.raft.is_leader]
        if leaders:
            with suppress(KafkaError, DiskFailed):
                self.propose(self.random.choice(leaders).node_id)
