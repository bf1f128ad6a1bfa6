"""The promises of the quorum, looked at after every event of a `World`. The numbers are those of FAULTS.md.

I1 one leader an epoch; I2 a node's epoch never goes back, not even by a crash; I3 one vote an epoch; I4 what is
committed stays so on every node; I5 a majority of the voters has on disk what is newly committed; I6 nothing committed
is cut; I7 everybody has the same at the same offset; I8 a snapshot is what the log adds up to; I9 a leader loads none.
"""

from klamm.errors import KafkaError
from klamm.ids import BrokerId
from klamm.metadata.records import MetadataRecord
from klamm.quorum.messages import VoteReply, VoteRequest
from klamm.quorum.raft import Raft
from klamm.quorum.ready import Ready
from klamm.quorum.voters import Voter
from klamm.records.batch import Batch, batches
from tests.quorum.world import Node, World


class Checks:
    def __init__(self, world: World) -> None:
        self.world = world
        self.leaders: dict[int, BrokerId] = {}
        self.epochs: dict[tuple[BrokerId, bytes], int] = {}
        self.votes: dict[tuple[BrokerId, bytes, int], object] = {}
        self.ledger: dict[int, Batch] = {}
        """Committed batches by base offset."""
        self.records: dict[int, list[MetadataRecord]] = {}
        self.ledger_end = 0
        self._watermarks: dict[tuple[BrokerId, int], int] = {}
        self._looked_at: dict[tuple[BrokerId, int], int] = {}
        world.on_ready = self.ready
        world.on_vote = self.vote
        world.after_event = self.everything

    # When something is told.

    def vote(self, node: Node, request: VoteRequest, reply: VoteReply) -> None:
        if reply.granted and not request.pre_vote:
            key = (node.node_id, node.directory_id, reply.epoch)
            assert self.votes.setdefault(key, request.candidate) == request.candidate, f"I3: {key} voted twice"

    def ready(self, node: Node, ready: Ready) -> None:
        self.everything()
        if ready.snapshot is not None:
            assert not node.alive.is_leader or node.applied_end == 0, "I9: a leader loads no snapshot"
            end = ready.snapshot.offset + 1
            expected = self.records_below(end)
            found = list(ready.snapshot.records)
            assert found == expected, f"I8: a snapshot below {end} has {len(found)} records, not {len(expected)}"
            ready.snapshot.records = iter(found)
        for batch in ready.committed:
            known = self.ledger[batch.base_offset]
            assert (known.last_offset, known.leader_epoch) == (batch.last_offset, batch.epoch), "I7"
            assert self.records.setdefault(batch.base_offset, list(batch.records)) == list(batch.records), "I7"

    def records_below(self, end: int) -> list[MetadataRecord]:
        return [record for base in sorted(self.records) if base < end for record in self.records[base]]

    # After every event.

    def everything(self) -> None:
        for node in self.world.nodes.values():
            if node.raft is not None:
                self._node(node, node.raft)

    def _node(self, node: Node, raft: Raft) -> None:
        me = (node.node_id, node.directory_id)
        assert raft.epoch >= self.epochs.get(me, 0), f"I2: {me} went back to epoch {raft.epoch}"
        self.epochs[me] = raft.epoch
        if raft.is_leader:
            if raft.epoch not in self.leaders:
                self._is_complete(raft)
            leader = self.leaders.setdefault(raft.epoch, node.node_id)
            assert leader == node.node_id, f"I1: {leader} and {node.node_id} lead epoch {raft.epoch}"
        life = (node.node_id, node.life)
        before = self._watermarks.get(life, 0)
        assert raft.high_watermark >= before, "I4: the watermark went back"
        assert raft.log.end_offset >= raft.high_watermark, f"I6: {raft} was cut below what is committed"
        if raft.high_watermark > before or life not in self._watermarks:
            self._watermarks[life] = raft.high_watermark
            # A leader that is no voter any more resigns in the moment in which that is committed.
            led = self.leaders.get(raft.epoch) == node.node_id
            if led and raft.high_watermark > self.ledger_end:
                self._commit(raft)
            assert raft.high_watermark <= self.ledger_end, "I5: a follower knows of more than any leader committed"
            self._compare(life, raft)

    def _is_complete(self, leader: Raft) -> None:
        """'If a log entry is committed in a given term, it will be present in the logs of the leaders for all
        higher-numbered terms.'"""
        start = leader.log.start_offset
        found = {batch.base_offset: batch for batch in _batches(leader, start, self.ledger_end)}
        expected = {base: batch for base, batch in self.ledger.items() if base >= start}
        assert found == expected, f"{leader} leads without everything that is committed below {self.ledger_end}"

    def _commit(self, leader: Raft) -> None:
        """I5: what is new is on the disks of a majority; then it goes into the ledger."""
        holders = [key for key in leader.voters.values() if _holds(self.world.nodes[key.node_id], key, leader)]
        assert len(holders) >= leader.voters.needed, f"I5: {leader} is committed on {len(holders)} disks"
        for batch in _batches(leader, self.ledger_end, leader.high_watermark):
            self.ledger[batch.base_offset] = batch
        self.ledger_end = leader.high_watermark

    def _compare(self, life: tuple[BrokerId, int], raft: Raft) -> None:
        start = max(self._looked_at.get(life, 0), raft.log.start_offset)
        for batch in _batches(raft, start, raft.high_watermark):
            assert self.ledger.get(batch.base_offset) == batch, (
                f"I7: {batch} is not {self.ledger.get(batch.base_offset)}"
            )
        self._looked_at[life] = raft.high_watermark


def _holds(node: Node, voter: Voter, leader: Raft) -> bool:
    """Whether everything committed by the leader is on this voter's disk: its log, as recovery would find it."""
    raft = node.raft
    if raft is None or node.directory_id != voter.directory_id:
        # It acknowledged while it lived, or before it lost its disk. Later leaders show whether that was enough.
        return True
    if max(raft.log.recovery_point, node.survived_end) < leader.high_watermark:
        return False
    start = max(raft.log.start_offset, leader.log.start_offset)
    try:
        return list(_batches(raft, start, leader.high_watermark)) == list(
            _batches(leader, start, leader.high_watermark)
        )
    except KafkaError:
        return False


def _batches(raft: Raft, start: int, end: int) -> list[Batch]:
    found: list[Batch] = []
    while start < end:
        piece = list(batches(bytes(raft.log.read(start, 1 << 20, end))))
        if not piece:
            break
        found += [batch for _, batch in piece if batch.base_offset >= start or not found]
        start = piece[-1][1].next_offset
    return found
