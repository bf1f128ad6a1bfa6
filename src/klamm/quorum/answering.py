"""How a node answers the others: votes, news of an epoch that began or ended, fetches.

Every answer is true when it leaves: what it promises is on the disk. A request that is strange is answered with an
error and changes nothing.

Anybody can send a request. So a request moves us to a later epoch only together with our vote, and that is given only
while we know of no leader that lives. What it says besides is a claim: we ask whom it is about (`claims.py`). Epochs
and leaders are learned from what voters answer (docs/decisions/0014-whom-the-quorum-believes.md).
"""

from typing import TYPE_CHECKING

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, ZERO_UUID, BrokerId, Epoch
from klamm.log.files import DiskFailed
from klamm.quorum import membership
from klamm.quorum.candidate import goes_first, is_as_far
from klamm.quorum.election import LAST_EPOCH
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

REACH = 10
"""A candidate is so many elections ahead of us at most; from one that is further we hear by asking who leads."""

SUCCESSOR_STEP_MS = 30.0
"""How much later each next successor of a leader that resigned stands, should those before it fail."""


# Votes.


def vote(me: "Participant", request: VoteRequest) -> VoteReply:
    """Nothing moves unless the vote is given: an epoch that somebody merely asks about is not ours."""
    error = _misdirected(me, request.cluster_id, request.voter) or _vote_error(me, request)
    if not error:
        _maybe_ask_itself(me, request.candidate, request.epoch)
        if me.voters.has(request.candidate):
            me.meet(request.candidate)
        error = _candidate_error(me, request)
    if error or me.believes_in_leader():
        return _vote_reply(me, granted=False, error=error)
    if request.epoch > me.epoch + REACH or not _is_eligible(me, request):
        return _vote_reply(me, granted=False)
    granted = _would_vote(me, request) if request.pre_vote else _votes(me, request)
    return _vote_reply(me, granted=granted)


def _vote_error(me: "Participant", request: VoteRequest) -> ErrorCode:
    if not me.may_vote:
        return ErrorCode.KAFKA_STORAGE_ERROR if me.journal.log.failed is not None else ErrorCode.INVALID_REQUEST
    candidate, log = request.candidate, request.log
    # Whoever has begun an epoch has written nothing in it yet. Whoever asks beforehand may be in the epoch it wrote in.
    latest = request.epoch if request.pre_vote else request.epoch - 1
    is_possible = 0 <= log.epoch <= latest and log.end_offset >= 0 and 0 <= request.epoch <= LAST_EPOCH
    is_another = candidate.node_id >= 0 and candidate.node_id != me.node_id
    return ErrorCode.NONE if is_possible and is_another else ErrorCode.INVALID_REQUEST


def _candidate_error(me: "Participant", request: VoteRequest) -> ErrorCode:
    if request.epoch < me.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    is_known = me.voters.has(request.candidate)
    if is_known and me.is_voter:
        return ErrorCode.NONE
    # If both vote, what says so stands where our log does not reach; and there it has read who we are. But anybody can
    # claim that: candidates whom we know have the first turn.
    may_be_so = me.voters.is_recorded and request.voter == me.identity.key and request.log > me.journal.position
    is_its_turn = is_known or me.is_without_leader_for_long()
    return ErrorCode.NONE if may_be_so and is_its_turn else ErrorCode.INCONSISTENT_VOTER_SET


def _would_vote(me: "Participant", request: VoteRequest) -> bool:
    """Asked beforehand: not while we are about to win ourselves. (A leader without followers resigns first.)"""
    if me.leading is not None:
        return False
    if me.insists() and goes_first(me.journal.position, me.node_id, request.log, request.candidate.node_id):
        return False
    me.make_way()
    return True


def _votes(me: "Participant", request: VoteRequest) -> bool:
    """One vote an epoch, and none once its leader is known."""
    if request.epoch == me.epoch:
        if me.voted_for == request.candidate:
            return True
        if me.voted_for != NOBODY or me.role not in (Role.UNATTACHED, Role.PROSPECTIVE):
            return False
    me.become_unattached(request.epoch, request.candidate)
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
    """Believed at once where we have helped to make it true; whatever else it says, its leader is asked about it."""
    error = _misdirected(me, request.cluster_id, request.voter) or _claim_error(me, request.leader_id, request.epoch)
    if error:
        return _epoch_reply(me, error)
    if request.epoch == me.epoch and request.leader_id == me.leader_id:
        _hurry(me)
    elif request.epoch == me.epoch and request.leader_id == me.election.voted_id:
        if me.address_of(request.leader_id) is None:
            me.note_address(request.leader_id, request.leader_address)
        me.become_follower(request.epoch, request.leader_id)
    else:
        me.claims.note(request.leader_id)
    return _epoch_reply(me)


def end_quorum_epoch(me: "Participant", request: EndEpoch) -> EpochReply:
    """A leader that is alive is asked whether it is true. Where there is none, somebody has to stand anyway."""
    error = _misdirected(me, request.cluster_id, NOBODY) or _claim_error(me, request.leader_id, request.epoch)
    if error:
        return _epoch_reply(me, error)
    if request.epoch > me.epoch:
        me.claims.note(request.leader_id)
    elif me.believes_in_leader():
        _hurry(me)
    else:
        places = [at for at, key in enumerate(request.successors) if key.node_id == me.node_id]
        place = min(places[0] if places else len(request.successors), len(me.voters))
        me.doubt_leader(SUCCESSOR_STEP_MS * place)
    return _epoch_reply(me)


def _hurry(me: "Participant") -> None:
    if me.following is not None:
        me.following.hurry(me.now.monotonic_ms)


def _epoch_reply(me: "Participant", error: ErrorCode = ErrorCode.NONE) -> EpochReply:
    return EpochReply(me.epoch, me.leader_id, me.address_of(me.leader_id), error)


def _claim_error(me: "Participant", leader_id: BrokerId, epoch: Epoch) -> ErrorCode:
    if epoch < me.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    # We would know if we led that epoch.
    if epoch > LAST_EPOCH or leader_id < 0 or leader_id == me.node_id:
        return ErrorCode.INVALID_REQUEST
    if epoch == me.epoch and me.leader_id not in (NO_BROKER, leader_id):
        # Two leaders of one epoch: one of them is a lie.
        return ErrorCode.INVALID_REQUEST
    is_known = leader_id in me.voters or leader_id == me.leader_id
    is_ours = epoch == me.epoch and leader_id == me.election.voted_id
    return ErrorCode.NONE if is_known or is_ours else ErrorCode.INCONSISTENT_VOTER_SET


def _maybe_ask_itself(me: "Participant", key: ReplicaKey, epoch: Epoch) -> None:
    """Somebody speaks of a later epoch in its name, to a leader. If it is true, it cannot follow this one."""
    is_reached = key.node_id != me.node_id and me.address_of(key.node_id) is not None
    if me.leading is not None and epoch > me.epoch and is_reached:
        me.leading.ask_itself(key, me.now.monotonic_ms)


# Fetches.


def fetch(me: "Participant", request: QuorumFetch) -> QuorumFetched | None:
    """Take note of how far the replica is; None if there is nothing to tell it yet."""
    leading = me.leading
    if leading is None or _refused(me, request):
        _maybe_ask_itself(me, request.replica, request.epoch)
        return fetched(me, request)
    progress = leading.progress(request.replica, me.voters)
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
    if _is_another(me, request.replica):
        me.leading.progress(request.replica, me.voters).seen(me.now)
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
    if min(request.offset, request.last_fetched_epoch, request.epoch) < 0 or not _is_another(me, request.replica):
        return ErrorCode.INVALID_REQUEST
    return _fetch_error(me, request.cluster_id, request.epoch)


def _is_another(me: "Participant", replica: ReplicaKey) -> bool:
    """Whether it can be somebody who follows us. Under our own number it would be taken for us with another disk."""
    return replica.node_id >= 0 and replica.node_id != me.node_id


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
