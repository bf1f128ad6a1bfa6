"""What a node makes of the answers to its own requests, and of silence.

Every answer tells who leads which epoch; that comes first and may change everything. The rest of an answer counts only
if it is the one being waited for: a late one, from before a change of role, is about another state of affairs.
"""

from typing import TYPE_CHECKING

from klamm.errors import ErrorCode, KafkaError
from klamm.log.files import DiskFull
from klamm.quorum.facts import SnapshotFetched, SnapshotUnreadable
from klamm.quorum.follower import Following
from klamm.quorum.messages import (
    BeginEpoch,
    EpochReply,
    Outgoing,
    QuorumFetched,
    SnapshotChunk,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.roles import Role
from klamm.quorum.snapshot import UnreadableSnapshot

if TYPE_CHECKING:
    from klamm.quorum.participant import Participant


def vote(me: "Participant", outgoing: Outgoing, reply: VoteReply) -> None:
    waited = me.round
    if me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to):
        return
    if waited is None or waited is not me.round or waited.waiting.get(outgoing.to) is not outgoing:
        return
    if reply.error is ErrorCode.INVALID_VOTER_KEY:
        me.met.pop(outgoing.to, None)
    if reply.granted and not reply.error:
        waited.grant(outgoing.to)
        me.maybe_go_on()
    else:
        waited.refuse(outgoing.to, me.now.monotonic_ms, _retry_ms(me))
        _maybe_give_up(me)


def epoch(me: "Participant", outgoing: Outgoing, reply: EpochReply) -> None:
    if me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to):
        return
    if me.leading is not None and me.leading.telling.get(outgoing.to) is outgoing:
        if isinstance(outgoing.request, BeginEpoch) and not reply.error:
            me.leading.confirmed.add(outgoing.request.voter)
        me.leading.told(outgoing.to, me.now.monotonic_ms + me.settings.fetch_wait_ms)


def fetched(me: "Participant", outgoing: Outgoing, reply: QuorumFetched) -> None:
    following = _waiting_for(me, outgoing)
    if me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to) or following is None:
        return
    following.asking = None
    is_of_later = reply.snapshot is not None and reply.snapshot.epoch > me.epoch
    if reply.error or reply.epoch != me.epoch or reply.leader_id != following.leader_id or is_of_later:
        _fetch_failed(me, following, reply.error)
        return
    following.heard(me.now.monotonic_ms)
    if reply.diverging is not None:
        me.journal.cut_where_it_parts(reply.diverging, me.high_watermark)
    elif reply.snapshot is not None:
        me.journal.check_keeps(me.high_watermark, reply.snapshot)
        following.snapshot = me.journal.snapshots.fetch(reply.snapshot)
    else:
        _append(me, following, reply)


def snapshot_chunk(me: "Participant", outgoing: Outgoing, reply: SnapshotChunk) -> None:
    following = _waiting_for(me, outgoing)
    if me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to) or following is None:
        return
    following.asking = None
    fetching = following.snapshot
    if reply.error or reply.epoch != me.epoch or fetching is None:
        # It may be gone for a newer one: the next fetch of the log will tell.
        following.snapshot = None
        _fetch_failed(me, following, reply.error)
        return
    following.heard(me.now.monotonic_ms)
    if reply.snapshot != fetching.snapshot or reply.position != fetching.position or reply.data is None:
        following.snapshot = None
        return
    fetching.take(bytes(reply.data))
    if fetching.position < reply.size:
        return
    following.snapshot = None
    try:
        me.journal.install(fetching)
    except UnreadableSnapshot as error:
        me.tell(SnapshotUnreadable(str(error)))
        following.lost(me.now.monotonic_ms, _retry_ms(me))
        return
    me.high_watermark = max(me.high_watermark, fetching.snapshot.end_offset)
    me.tell(SnapshotFetched(*fetching.snapshot))


def lost(me: "Participant", outgoing: Outgoing) -> None:
    """No answer: the connection was refused, or closed, or it took too long."""
    now_ms = me.now.monotonic_ms
    following = _waiting_for(me, outgoing)
    if following is not None:
        following.lost(now_ms, _retry_ms(me))
    elif me.claims.asking is outgoing:
        me.claims.asking = None
    elif me.searching is outgoing:
        me.searching = None
        me.search_losses += 1
        me.search_ms = now_ms + _retry_ms(me)
    elif isinstance(outgoing.request, VoteRequest):
        if me.round is not None and me.round.waiting.get(outgoing.to) is outgoing:
            me.round.lose(outgoing.to, now_ms, _retry_ms(me))
            _maybe_give_up(me)
    elif (
        isinstance(outgoing.request, BeginEpoch)
        and me.leading is not None
        and me.leading.telling.get(outgoing.to) is outgoing
    ):
        me.leading.told(outgoing.to, now_ms + me.settings.fetch_wait_ms / 4)


def found(me: "Participant", outgoing: Outgoing, reply: QuorumFetched) -> None:
    """An observer asked somebody who might know the leader."""
    if me.searching is outgoing:
        me.searching = None
        me.search_losses = 0
        me.search_ms = me.now.monotonic_ms + _retry_ms(me)
    me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to)


def claim(me: "Participant", outgoing: Outgoing, reply: QuorumFetched) -> None:
    """Somebody claimed that this voter leads: it has said itself what is true of that."""
    me.claims.asking = None
    me.learn(reply.epoch, reply.leader_id, reply.leader_address, outgoing.to)


def _maybe_give_up(me: "Participant") -> None:
    """An election that cannot be won any more need not be waited for."""
    if me.role is Role.CANDIDATE and me.round is not None and me.round.is_lost:
        me.stand_again()


def _append(me: "Participant", following: Following, reply: QuorumFetched) -> None:
    if reply.records is not None and len(reply.records):
        try:
            me.journal.append_fetched(bytes(reply.records), me.epoch, me.now)
        except (KafkaError, DiskFull):
            # Damaged on its way, or no room. What we have is sound; the leader will be asked again.
            following.retry_ms = me.now.monotonic_ms + me.settings.fetch_wait_ms
            return
    committed = min(reply.high_watermark, me.journal.end_offset)
    me.high_watermark = max(me.high_watermark, committed)


def _fetch_failed(me: "Participant", following: Following, error: ErrorCode) -> None:
    following.retry_ms = me.now.monotonic_ms + _retry_ms(me)
    if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH):
        # It was the leader of this epoch and says that it is not: it resigned, or died and came back. Or it has never
        # heard of this epoch: whoever told us so was wrong.
        me.doubt_leader()


def _waiting_for(me: "Participant", outgoing: Outgoing) -> Following | None:
    return me.following if me.following is not None and me.following.asking is outgoing else None


def _retry_ms(me: "Participant") -> float:
    return me.settings.retry_ms * me.random.uniform(0.7, 1.3)
