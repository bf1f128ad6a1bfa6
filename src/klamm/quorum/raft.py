"""The metadata log's agreement: propose records, hear when they are committed.

Raft by fetch (KRaft: KIP-595, with pre-vote KIP-996 and changing voters KIP-853). A leader is elected by a majority
that has seen no more than it has; followers fetch from it, and a fetch at an offset says that everything below is on
their disks; what a majority holds is committed. The leader of a new epoch begins with a LeaderChange, and what earlier
epochs left is committed together with that.

A state machine without waiting. `propose` appends to the page cache; requests of other nodes are answered at once;
what is to be flushed, sent and applied stands in `ready`, which is to be asked after every call until it is empty; the
disk's and the others' answers come in through `flushed`, `heard` and `lost`, and time through `tick`.

A quorum of one is elected within `start`, by the same rules: a new epoch, its vote on the disk, a LeaderChange.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from klamm.config import BrokerConfig
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell, unheard
from klamm.ids import BrokerId, Epoch, Now, Offset, Uuid
from klamm.log.files import DiskFailed, DiskFull, Files
from klamm.log.log import Log
from klamm.log.salvage import Care
from klamm.log.settings import LogSettings
from klamm.metadata import records as metadata_records
from klamm.metadata.records import MetadataRecord
from klamm.quorum import answering, hearing, membership, timing
from klamm.quorum.election import LAST_EPOCH
from klamm.quorum.facts import OtherCluster, SnapshotTaken, SnapshotUnreadable
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.journal import REPLAY_BYTES, Journal, UnreadableMetadata
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    EpochReply,
    Outgoing,
    QuorumDescription,
    QuorumFetch,
    QuorumFetched,
    ReplyValue,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotId,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.participant import Participant
from klamm.quorum.ready import Ready
from klamm.quorum.roles import Role
from klamm.quorum.settings import QuorumSettings
from klamm.quorum.snapshot import SnapshotFiles, SnapshotWriter
from klamm.quorum.voters import Voter, Voters
from klamm.records.builder import BatchBuilder

__all__ = ["DIRECTORY", "REPLAY_BYTES", "TOPIC", "Raft", "UnreadableMetadata"]

TOPIC = "__cluster_metadata"
DIRECTORY = f"{TOPIC}-0"

MOST_STRANGERS = 100
CLEANING_MS = 60_000.0
"""How often old snapshots and segments are looked for."""


class Proposal:
    """Records of one batch, encoded as they come."""

    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.records: list[MetadataRecord] = []
        self.builder = BatchBuilder(leader_epoch=epoch)

    def add(self, records: Sequence[MetadataRecord], now: Now) -> None:
        self.records += records
        for record in records:
            self.builder.append(None, metadata_records.encode(record), now.wall_ms)


class Raft:
    def __init__(self, me: Participant, now: Now) -> None:
        self._me = me
        self._journal = me.journal
        self._writer: tuple[SnapshotId, SnapshotWriter] | None = None
        self._strangers: set[tuple[BrokerId, bool]] = set()
        """Nodes of other clusters of which was told."""
        self._snapshot_due_ms = now.monotonic_ms + me.settings.snapshot_after_ms
        self._clean_ms = now.monotonic_ms + CLEANING_MS

    @classmethod
    def open(
        cls,
        config: BrokerConfig,
        identity: NodeIdentity,
        voters: Voters,
        files: Files,
        random: Random,
        now: Now,
        *,
        clean: bool,
        recovery_point: Offset = 0,
        is_voter_role: bool = True,
        machine_restarted: bool | None = True,
        on_damage: Callable[[], None] = lambda: None,
        tell: Tell = unheard,
    ) -> "Raft":
        """On what the disk holds. Nothing is promised to anybody before `start`.

        Unless the machine was restarted since (None: nobody can tell), all that was written is there, and damage is not
        a torn write: then the log is not cut, and this raises `LogDamaged`. `on_damage` is called before it is cut.

        `voters` are the configured ones: they count until the log names voters, and tell where these are reached.
        """
        settings = LogSettings(
            segment_bytes=config.integer("metadata.log.segment.bytes"),
            segment_ms=config.integer("metadata.log.segment.ms"),
            # Only what a snapshot holds may go, and only the quorum knows what that is.
            retention_ms=-1,
            retention_bytes=-1,
        )
        keeps_writes = None if machine_restarted is None else not machine_restarted
        care = Care(keeps_writes, is_only_copy=set(voters) == {identity.node_id}, is_flushed_first=True)
        snapshots = SnapshotFiles(files, DIRECTORY)
        if care.is_only_copy and snapshots.latest is not None:
            # A node alone has a snapshot of nothing that its log had not reached, and flushed.
            recovery_point = max(recovery_point, snapshots.latest.end_offset)
        log = Log.open(
            DIRECTORY,
            files,
            settings,
            now,
            clean=clean,
            recovery_point=recovery_point,
            tell=tell,
            on_damage=on_damage,
            care=care,
        )
        journal = Journal(log, snapshots, voters, tell)
        journal.was_cut = log.recovery_point < recovery_point
        quorum_settings = QuorumSettings.of(config)
        me = Participant(identity, quorum_settings, journal, files, random, now, is_voter_role=is_voter_role, tell=tell)
        return cls(me, now)

    def start(self, now: Now) -> None:
        """Take part. A voter alone leads when this returns."""
        self._me.now = now
        self._me.begin()

    # What it is.

    @property
    def log(self) -> Log:
        return self._journal.log

    @property
    def node_id(self) -> BrokerId:
        return self._me.node_id

    @property
    def directory_id(self) -> Uuid:
        return self._me.identity.directory_id

    @property
    def cluster_id(self) -> str:
        return self._me.identity.cluster_id

    @property
    def epoch(self) -> Epoch:
        return self._me.epoch

    @property
    def leader_id(self) -> BrokerId:
        """NO_BROKER while none is known."""
        return self._me.leader_id

    @property
    def voted_id(self) -> BrokerId:
        """Whom it voted for in this epoch; NO_BROKER while it has not."""
        return self._me.election.voted_id

    @property
    def role(self) -> Role:
        return self._me.role

    @property
    def is_leader(self) -> bool:
        return self._me.leading is not None

    @property
    def is_active_leader(self) -> bool:
        """Whether a majority has confirmed it, and with that everything it found in its log."""
        return self._me.leading is not None and self._me.high_watermark > self._me.leading.start_offset

    @property
    def is_voter(self) -> bool:
        return self._me.is_voter

    @property
    def voters(self) -> Voters:
        """The latest in the log, committed or not."""
        return self._me.voters

    @property
    def high_watermark(self) -> Offset:
        """Everything below it is committed. It never goes back."""
        return self._me.high_watermark

    @property
    def position(self) -> tuple[Offset, Offset, BrokerId, Epoch]:
        """When this is another than before, fetches that wait may have something to hear."""
        me = self._me
        return me.journal.end_offset, me.high_watermark, me.leader_id, me.epoch

    def address_of(self, node_id: BrokerId) -> Address | None:
        return self._me.address_of(node_id)

    def describe(self, now: Now) -> QuorumDescription:
        """KafkaError where it does not lead: only the leader knows how far the others are."""
        me = self._me
        if me.leading is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        voters, observers = me.leading.described(me.voters, me.journal.end_offset, now)
        addresses = {node_id: address for node_id in me.voters if (address := me.address_of(node_id))}
        return QuorumDescription(me.leader_id, me.epoch, me.high_watermark, voters, observers, addresses)

    def fetched_end(self, node_id: BrokerId) -> Offset:
        """Below this, the node has fetched everything from us in this epoch; 0 if it has not, or we do not lead."""
        leading = self._me.leading
        if leading is None:
            return 0
        return max((each.end_offset for key, each in leading.replicas.items() if key.node_id == node_id), default=0)

    # What the leader is asked.

    def propose(self, records: Sequence[MetadataRecord], now: Now) -> Offset:
        """Append the records as one batch, all or nothing; the offset of the last. Committed is another matter.

        What does not fit into a segment of the log is refused (KafkaError), and nothing has happened.
        """
        assert records
        proposal = self.begin_proposal()
        proposal.add(records, now)
        return self.propose_all(proposal, now)

    def begin_proposal(self) -> "Proposal":
        """For records of one batch that are not all there yet."""
        self._check_leading()
        return Proposal(self._me.epoch)

    def propose_all(self, proposal: "Proposal", now: Now) -> Offset:
        """As `propose`, of the records of this proposal."""
        self._check_leading()
        assert proposal.epoch == self._me.epoch, "begun by this leader, in this epoch"
        return self._journal.append(proposal.builder.build(), proposal.records, proposal.epoch, now)

    def add_voter(self, voter: Voter, now: Now) -> Offset:
        """The offset at which it votes; it is decided when that is committed."""
        return self._change_voters(lambda me: membership.add_voter(me, voter), now)

    def remove_voter(self, node_id: BrokerId, directory_id: Uuid, now: Now) -> Offset:
        return self._change_voters(lambda me: membership.remove_voter(me, node_id, directory_id), now)

    def resign(self, now: Now) -> None:
        """Let another one lead, and tell the others so. Without effect where it does not lead."""
        self._me.now = now
        if self._me.leading is not None:
            self._me.resign("it was asked to")

    # What other nodes ask.

    def vote(self, request: VoteRequest, now: Now) -> VoteReply:
        self._me.now = now
        if request.cluster_id not in (None, self.cluster_id):
            self._meet_stranger(request.candidate.node_id, asks=True)
        try:
            return answering.vote(self._me, request)
        except DiskFailed as error:
            self._failed(error)
            return VoteReply(self._me.epoch, error=ErrorCode.KAFKA_STORAGE_ERROR)

    def begin_quorum_epoch(self, request: BeginEpoch, now: Now) -> EpochReply:
        self._me.now = now
        try:
            return answering.begin_quorum_epoch(self._me, request)
        except DiskFailed as error:
            self._failed(error)
            return EpochReply(self._me.epoch, error=ErrorCode.KAFKA_STORAGE_ERROR)

    def end_quorum_epoch(self, request: EndEpoch, now: Now) -> EpochReply:
        self._me.now = now
        try:
            return answering.end_quorum_epoch(self._me, request)
        except DiskFailed as error:
            self._failed(error)
            return EpochReply(self._me.epoch, error=ErrorCode.KAFKA_STORAGE_ERROR)

    def fetch(self, request: QuorumFetch, now: Now) -> QuorumFetched | None:
        """The replica has everything below its offset. None: there is nothing to tell it yet, let it wait until
        `has_news`, or for its `max_wait_ms`, and answer with `fetched`."""
        self._me.now = now
        if request.cluster_id not in (None, self.cluster_id):
            self._meet_stranger(request.replica.node_id, asks=True)
        try:
            return answering.fetch(self._me, request)
        except DiskFailed as error:
            self._failed(error)
            return self.fetched(request)

    def has_news(self, request: QuorumFetch) -> bool:
        return answering.has_news(self._me, request)

    def fetched(self, request: QuorumFetch) -> QuorumFetched:
        """The answer as it is now, to a fetch that has waited."""
        return answering.fetched(self._me, request)

    def fetch_snapshot(self, request: SnapshotFetch, now: Now) -> SnapshotChunk:
        self._me.now = now
        return answering.fetch_snapshot(self._me, request)

    # What other nodes answer.

    def heard(self, outgoing: Outgoing, reply: ReplyValue, now: Now) -> None:
        """The reply to this very request."""
        me = self._me
        me.now = now
        if reply.epoch > LAST_EPOCH:
            # Whoever answers this is out of order: as good as no answer.
            hearing.lost(me, outgoing)
            return
        if reply.error is ErrorCode.INCONSISTENT_CLUSTER_ID:
            # What it says of epochs and leaders is about another cluster.
            self._meet_stranger(outgoing.to, asks=False)
            hearing.lost(me, outgoing)
            return
        try:
            match reply:
                case VoteReply():
                    hearing.vote(me, outgoing, reply)
                case EpochReply():
                    hearing.epoch(me, outgoing, reply)
                case QuorumFetched() if me.searching is outgoing:
                    hearing.found(me, outgoing, reply)
                case QuorumFetched() if me.claims.asking is outgoing:
                    hearing.claim(me, outgoing, reply)
                case QuorumFetched():
                    hearing.fetched(me, outgoing, reply)
                case SnapshotChunk():
                    hearing.snapshot_chunk(me, outgoing, reply)
        except DiskFailed as error:
            self._failed(error)

    def _meet_stranger(self, node_id: BrokerId, *, asks: bool) -> None:
        """Somebody's configuration names the wrong nodes, or a node has the wrong directory: told once of each."""
        if (node_id, asks) not in self._strangers and len(self._strangers) < MOST_STRANGERS:
            self._strangers.add((node_id, asks))
            self._me.tell(OtherCluster(node_id, self.cluster_id, "asks" if asks else "refuses"))

    def lost(self, outgoing: Outgoing, now: Now) -> None:
        """There will be no reply: refused, closed, or too late."""
        self._me.now = now
        hearing.lost(self._me, outgoing)

    def node_is_gone(self, node_id: BrokerId, now: Now) -> None:
        """There is evidence that this node's process is dead. Its followers do not wait for a timeout."""
        me = self._me
        me.now = now
        if node_id == me.leader_id or (me.role is Role.UNATTACHED and node_id == me.election.voted_id):
            me.doubt_leader()

    # Time, disk, and what is to be done.

    @property
    def next_deadline_ms(self) -> float | None:
        """When `tick` is to be called at the latest; it may have passed."""
        if self._writer is not None and self._journal.log.failed is None:
            return self._me.now.monotonic_ms
        due_ms = timing.next_deadline_ms(self._me)
        return self._clean_ms if due_ms is None else min(due_ms, self._clean_ms)

    def tick(self, now: Now) -> None:
        me = self._me
        me.now = now
        try:
            timing.tick(me)
            if me.journal.log.failed is None:
                self._write_snapshot(now)
            if self._clean_ms <= now.monotonic_ms:
                self._clean_ms = now.monotonic_ms + CLEANING_MS
                self._journal.clean(now, me.high_watermark, me.settings.retention_bytes, me.settings.retention_ms)
        except DiskFailed as error:
            self._failed(error)

    def ready(self, *, applies: bool = True) -> Ready:
        """What is to be done now. Ask again until there is nothing: a long log is told in pieces. Who cannot apply
        anything at present hears of the rest."""
        me, journal = self._me, self._journal
        ready = Ready(snapshot=journal.take_snapshot_to_load() if applies else None)
        try:
            ready.flush = journal.next_flush()
        except DiskFailed as error:
            self._failed(error)
        timing.ask(me)
        ready.requests, me.outbox = me.outbox, []
        ready.checkpoint, journal.was_cut = journal.was_cut, False
        if applies and ready.snapshot is None:
            try:
                ready.committed = journal.next_committed(me.high_watermark)
            except DiskFailed as error:
                self._failed(error)
        return ready

    def flushed(self, up_to: Offset) -> None:
        """The flush that `ready` asked for is done."""
        self._journal.flushed(up_to)
        self._me.maybe_commit()

    def flush_failed(self, reason: str) -> None:
        """A failed flush is never tried again. This node takes no part any more until the log has been opened anew."""
        self._me.disk_failed(reason)

    def close_cleanly(self) -> None:
        self._journal.log.close_cleanly()

    # Snapshots.

    def wants_snapshot(self, now: Now) -> bool:
        """Whether enough was committed since the last snapshot, or long enough ago."""
        me, latest = self._me, self._journal.snapshots.latest
        if self._writer is not None or self._journal.applied <= (latest.end_offset if latest else 0):
            return False
        is_due = me.settings.snapshot_after_ms > 0 and self._snapshot_due_ms <= now.monotonic_ms
        return is_due or self._journal.bytes_since_snapshot >= me.settings.snapshot_after_bytes

    def take_snapshot(self, records: Iterable[MetadataRecord], offset: Offset, epoch: Epoch, now: Now) -> None:
        """Of everything up to and with this offset, which was written in this epoch. `tick` writes it in slices."""
        me, snapshot = self._me, SnapshotId(offset + 1, epoch)
        latest = self._journal.snapshots.latest
        assert self._writer is None and snapshot.end_offset <= me.high_watermark
        assert latest is None or snapshot.end_offset > latest.end_offset
        me.now = now
        self._snapshot_due_ms = now.monotonic_ms + me.settings.snapshot_after_ms
        voters = self._journal.voters.as_of(snapshot.end_offset)
        try:
            self._writer = snapshot, self._journal.snapshots.write(snapshot, voters, records, now.wall_ms)
        except DiskFailed as error:
            self._snapshot_failed(error)

    def _write_snapshot(self, now: Now) -> None:
        if self._writer is None:
            return
        snapshot, writer = self._writer
        try:
            is_done = writer.write_slice()
        except DiskFailed as error:
            self._snapshot_failed(error)
            return
        if is_done:
            self._writer = None
            latest = self._journal.snapshots.latest
            if latest is not None and latest.end_offset >= snapshot.end_offset:
                # One was fetched from the leader meanwhile.
                writer.file.remove()
                return
            self._journal.snapshots.keep(snapshot, writer.file)
            self._journal.snapshot_taken(now)
            self._me.tell(SnapshotTaken(snapshot.end_offset, snapshot.epoch, writer.file.size))

    def _snapshot_failed(self, error: DiskFailed) -> None:
        """Everything is still in the log. There will be another one when its time has come."""
        self._writer = None
        self._me.tell(SnapshotUnreadable(f"it could not be written: {error}"))

    def _failed(self, error: DiskFailed) -> None:
        """A full disk has written nothing and broken no promise: what was to be done is not done, that is all."""
        if not isinstance(error, DiskFull) or self._journal.log.failed is not None:
            self._me.disk_failed(str(error))

    def _change_voters(self, change: Callable[[Participant], Offset], now: Now) -> Offset:
        self._check_leading()
        self._me.now = now
        try:
            return change(self._me)
        except DiskFailed as error:
            self._failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _check_leading(self) -> None:
        failure = self._journal.log.failed
        if failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, failure)
        if self._me.leading is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "This node does not lead the metadata quorum.")

    def __repr__(self) -> str:
        me, log = self._me, self._journal.log
        return (
            f"<quorum node={me.node_id} {me.role.value} leader={me.leader_id} epoch={me.epoch} "
            f"log={log.start_offset}..{log.end_offset} committed={me.high_watermark} applied={self._journal.applied}>"
        )
