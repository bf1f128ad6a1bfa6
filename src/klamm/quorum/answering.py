"""How a node answers the others: votes, news of an epoch that began or ended, fetches.

Every answer is true when it leaves: what it promises is on the disk. A request that is strange is answered with an
error and changes nothing.
"""

from typing import TYPE_CHECKING

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, ZERO_UUID, BrokerId, Epoch
from klamm.log.files import DiskFailed
from klamm.quorum import membership
from klamm.quorum.candidate import goes_first, is_as_far
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import (
    NOBODY,
    BeginEpoch,
    EndEpoch,
    EpochReply,
    LogPosition,
    QuorumFetch,
    QuorumFetched,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotId,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.roles import Role

if TYPE_CHECKING:
    from klamm.quorum.participant import Participant

SUCCESSOR_STEP_MS = 30.0
"""How much later each next successor of a leader that resigned stands, should those before it fail."""


# Votes.


def vote(me: "Participant", request: VoteRequest) -> VoteReply:
    error = _misdirected(me, request.cluster_id, request.voter)
    if not error and not me.may_vote:
        error = ErrorCode.KAFKA_STORAGE_ERROR if me.journal.log.failed is not None else ErrorCode.INVALID_REQUEST
    if error:
        return _vote_reply(me, granted=False, error=error)
    me.meet(request.candidate)
    if request.epoch < me.epoch:
        return _vote_reply(me, granted=False, error=ErrorCode.FENCED_LEADER_EPOCH)
    if request.epoch > me.epoch:
        me.become_unattached(request.epoch)
    granted = _would_vote(me, request) if request.pre_vote else _votes(me, request)
    return _vote_reply(me, granted=granted)


def _would_vote(me: "Participant", request: VoteRequest) -> bool:
    """Asked beforehand: not while somebody leads, nor while we are about to win ourselves."""
    if me.believes_in_leader() or not _is_eligible(me, request):
        return False
    if me.insists() and goes_first(me.journal.position, me.node_id, request.log, request.candidate.node_id):
        return False
    me.make_way()
    return True


def _votes(me: "Participant", request: VoteRequest) -> bool:
    """One vote an epoch, and none once its leader is known."""
    if me.voted_for == request.candidate:
        return True
    if me.voted_for != NOBODY or me.role not in (Role.UNATTACHED, Role.PROSPECTIVE) or not _is_eligible(me, request):
        return False
    me.become_unattached(me.epoch, request.candidate)
    return True


def _is_eligible(me: "Participant", request: VoteRequest) -> bool:
    """Its log is as far as ours. And it knows our directory, or nobody has written anything yet: a node that lost its
    disk has forgotten what it acknowledged, and must not help to elect somebody who never had it."""
    knows_us = request.voter.directory_id != ZERO_UUID or request.log.end_offset == 0
    return knows_us and is_as_far(request.log, me.journal.position)


def _vote_reply(me: "Participant", *, granted: bool, error: ErrorCode = ErrorCode.NONE) -> VoteReply:
    return VoteReply(me.epoch, granted, me.leader_id, me.address_of(me.leader_id), error)


# Epochs.


def begin_quorum_epoch(me: "Participant", request: BeginEpoch) -> EpochReply:
    error = _misdirected(me, request.cluster_id, request.voter) or _stale(me, request.leader_id, request.epoch)
    if not error and me.epoch == request.epoch and me.leader_id not in (NO_BROKER, request.leader_id):
        # Two leaders of one epoch: one of them is a lie.
        error = ErrorCode.INVALID_REQUEST
    if not error:
        me.note_address(request.leader_id, request.leader_address)
        if me.leader_id != request.leader_id or me.epoch != request.epoch:
            me.become_follower(request.epoch, request.leader_id)
        if me.following is not None:
            me.following.heard(me.now.monotonic_ms)
    return _epoch_reply(me, error)


def end_quorum_epoch(me: "Participant", request: EndEpoch) -> EpochReply:
    error = _misdirected(me, request.cluster_id, NOBODY) or _stale(me, request.leader_id, request.epoch)
    if not error and me.epoch == request.epoch and me.leader_id not in (NO_BROKER, request.leader_id):
        error = ErrorCode.INVALID_REQUEST
    if error:
        return _epoch_reply(me, error)
    if request.epoch > me.epoch:
        me.become_follower(request.epoch, request.leader_id)
    places = [at for at, key in enumerate(request.successors) if key.node_id == me.node_id]
    me.doubt_leader(SUCCESSOR_STEP_MS * (places[0] if places else len(request.successors)))
    return _epoch_reply(me)


def _epoch_reply(me: "Participant", error: ErrorCode = ErrorCode.NONE) -> EpochReply:
    return EpochReply(me.epoch, me.leader_id, me.address_of(me.leader_id), error)


def _stale(me: "Participant", leader_id: BrokerId, epoch: Epoch) -> ErrorCode:
    if epoch < me.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    # We would know if we led that epoch.
    return ErrorCode.INVALID_REQUEST if leader_id in (me.node_id, NO_BROKER) else ErrorCode.NONE


# Fetches.


def fetch(me: "Participant", request: QuorumFetch) -> QuorumFetched | None:
    """Take note of how far the replica is; None if there is nothing to tell it yet."""
    leading = me.leading
    if leading is None or _refused(me, request):
        return fetched(me, request)
    progress = leading.progress(request.replica)
    if me.journal.judged(request.offset, request.last_fetched_epoch) is None:
        progress.note(request.offset, me.journal.end_offset, me.now)
        me.maybe_commit()
        if me.leading is not None:
            membership.replace_returned(me, me.leading, request.replica)
    else:
        progress.seen(me.now)
    return fetched(me, request) if request.max_wait_ms <= 0 or has_news(me, request) else None


def has_news(me: "Participant", request: QuorumFetch) -> bool:
    """Whether a fetch that waits is to be answered now."""
    return (
        bool(_refused(me, request))
        or me.journal.end_offset > request.offset
        or me.high_watermark > request.high_watermark
        or me.journal.judged(request.offset, request.last_fetched_epoch) is not None
    )


def fetched(me: "Participant", request: QuorumFetch) -> QuorumFetched:
    """The answer as it is now."""
    reply = QuorumFetched(me.epoch, me.leader_id, me.address_of(me.leader_id), _refused(me, request))
    if reply.error:
        return reply
    journal = me.journal
    reply.high_watermark = me.high_watermark
    reply.start_offset = journal.log.start_offset
    match journal.judged(request.offset, request.last_fetched_epoch):
        case LogPosition() as parted:
            reply.diverging = parted
        case SnapshotId() as snapshot:
            reply.snapshot = snapshot
        case None:
            try:
                found = journal.read(request.offset, request.max_bytes)
            except (KafkaError, DiskFailed):
                reply.error = ErrorCode.KAFKA_STORAGE_ERROR
            else:
                reply.records = found.regions[0] if found.regions else None
    return reply


def fetch_snapshot(me: "Participant", request: SnapshotFetch) -> SnapshotChunk:
    error = _fetch_error(me, request.cluster_id, request.epoch)
    reply = SnapshotChunk(me.epoch, me.leader_id, me.address_of(me.leader_id), error, request.snapshot)
    if error:
        return reply
    assert me.leading is not None
    me.leading.progress(request.replica).seen(me.now)
    snapshots = me.journal.snapshots
    if request.snapshot not in snapshots.all:
        reply.error = ErrorCode.SNAPSHOT_NOT_FOUND
    elif not 0 <= request.position < snapshots.size_bytes(request.snapshot):
        reply.error = ErrorCode.POSITION_OUT_OF_RANGE
    else:
        max_bytes = min(max(request.max_bytes, 1), me.settings.snapshot_fetch_bytes)
        reply.position = request.position
        try:
            reply.size, reply.data = snapshots.chunk(request.snapshot, request.position, max_bytes)
        except DiskFailed:
            reply.error = ErrorCode.KAFKA_STORAGE_ERROR
    return reply


def _refused(me: "Participant", request: QuorumFetch) -> ErrorCode:
    if request.offset < 0 or request.last_fetched_epoch < 0:
        return ErrorCode.INVALID_REQUEST
    return _fetch_error(me, request.cluster_id, request.epoch)


def _fetch_error(me: "Participant", cluster_id: str | None, epoch: Epoch) -> ErrorCode:
    if cluster_id is not None and cluster_id != me.identity.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if epoch < me.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > me.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if me.leading is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE if me.journal.log.failed is None else ErrorCode.KAFKA_STORAGE_ERROR


def _misdirected(me: "Participant", cluster_id: str | None, voter: ReplicaKey) -> ErrorCode:
    """Meant for another cluster, another node, or for this one before it lost its disk."""
    if cluster_id is not None and cluster_id != me.identity.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if voter.node_id not in (NO_BROKER, me.node_id) or voter.directory_id not in (
        ZERO_UUID,
        me.identity.directory_id,
    ):
        return ErrorCode.INVALID_VOTER_KEY
    # Without the vote of its only voter nobody leads a quorum, whatever somebody says.
    return ErrorCode.INCONSISTENT_VOTER_SET if me.is_only_voter else ErrorCode.NONE
