"""What time asks for: who has to be asked now, who has been silent for too long, and when to look again."""

from dataclasses import replace
from typing import TYPE_CHECKING

from klamm.ids import ZERO_UUID, BrokerId
from klamm.quorum.follower import Following
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import BeginEpoch, QuorumFetch, Request, SnapshotFetch, VoteRequest
from klamm.quorum.roles import Role

if TYPE_CHECKING:
    from klamm.quorum.participant import Participant

QUICK_SEARCH = 8
"""That part of the fetch timeout a voter has to answer an observer that searches for the leader, at first."""


def tick(me: "Participant") -> None:
    """Change roles that have lasted too long."""
    now_ms = me.now.monotonic_ms
    if me.journal.log.failed is not None:
        return
    if me.following is not None and me.following.deadline_ms <= now_ms:
        _give_up_leader(me, me.following)
    elif me.leading is not None and me.leading.supported_until_ms(me.voters, me.settings.patience_ms) <= now_ms:
        me.resign("a majority has not fetched for too long")
    elif me.round is not None and me.round.deadline_ms <= now_ms:
        if me.role is Role.CANDIDATE:
            me.stand_again()
        else:
            me.round.renew(now_ms, now_ms + me.election_timeout_ms())
    elif me.stand_ms is not None and me.stand_ms <= now_ms:
        me.stand_ms = None
        if me.is_voter:
            me.stand("no leader is known")
    if me.leading is not None:
        me.leading.forget_old_observers(me.voters, now_ms)


def ask(me: "Participant") -> None:
    """Send what is due: one request at a time to each node, and no fetch before the last one is on the disk."""
    if me.journal.log.failed is not None:
        return
    _ask_about_claims(me)
    if me.round is not None:
        _ask_for_votes(me)
    elif me.leading is not None:
        _tell_of_epoch(me)
    elif me.following is not None:
        _ask_leader(me, me.following)
    elif not me.is_voter:
        _search(me)


def next_deadline_ms(me: "Participant") -> float | None:
    if me.journal.log.failed is not None:
        return None
    due_ms = _role_deadline_ms(me)
    if me.claims.is_waiting and _is_flushed(me):
        return me.claims.due_ms if due_ms is None else min(due_ms, me.claims.due_ms)
    return due_ms


def _role_deadline_ms(me: "Participant") -> float | None:
    if me.round is not None:
        return me.round.next_deadline_ms()
    if me.leading is not None:
        told_ms = me.leading.next_tell_ms(me.voters, me.settings.fetch_timeout_ms)
        until_ms = me.leading.supported_until_ms(me.voters, me.settings.patience_ms)
        until_ms = min(until_ms, told_ms) if told_ms is not None else until_ms
        return until_ms if until_ms < float("inf") else None
    if me.following is not None:
        deadline_ms = me.following.deadline_ms
        return min(deadline_ms, me.following.retry_ms) if _may_ask(me, me.following) else deadline_ms
    if me.is_voter:
        return me.stand_ms
    return me.search_ms if me.searching is None and me.voters and _is_flushed(me) else None


def _give_up_leader(me: "Participant", following: Following) -> None:
    """Those who still believe in it do not convince us before they would have given it up as well."""
    me.doubt_leader()
    if me.is_voter:
        me.stand(f"leader {following.leader_id} {'is gone' if following.leader_is_gone else 'is silent'}")
    else:
        me.become_unattached(me.epoch)


def _ask_for_votes(me: "Participant") -> None:
    assert me.round is not None
    for voter_id in me.round.to_ask(me.now.monotonic_ms):
        request = VoteRequest(
            cluster_id=me.identity.cluster_id,
            voter=ReplicaKey(voter_id, _directory_of(me, voter_id)),
            candidate=me.identity.key,
            epoch=me.epoch,
            log=me.journal.position,
            pre_vote=me.round.pre_vote,
        )
        outgoing = me.send(voter_id, request, me.settings.election_timeout_ms)
        if outgoing is not None:
            me.round.asked(voter_id, outgoing)
        else:
            me.round.unreachable(voter_id, me.now.monotonic_ms, me.settings.retry_ms)


def _tell_of_epoch(me: "Participant") -> None:
    leading = me.leading
    assert leading is not None
    now_ms = me.now.monotonic_ms
    for key in leading.to_tell(me.voters, now_ms, me.settings.fetch_timeout_ms):
        request = BeginEpoch(me.identity.cluster_id, key, me.node_id, me.epoch, me.address_of(me.node_id))
        outgoing = me.send(key.node_id, request, me.settings.request_timeout_ms)
        leading.tells(key.node_id, outgoing, now_ms)
        if outgoing is None:
            leading.told(key.node_id, now_ms + me.settings.fetch_timeout_ms)


def _ask_about_claims(me: "Participant") -> None:
    """The voter that is said to lead is asked itself, where we know it to be. A fetch, because its answer tells."""
    claims = me.claims
    if not claims.is_waiting or claims.due_ms > me.now.monotonic_ms or not _is_flushed(me):
        return
    claims.asking = me.send(claims.take(me.now.monotonic_ms), _who_leads(me), me.settings.fetch_timeout_ms)


def _ask_leader(me: "Participant", following: Following) -> None:
    if not _may_ask(me, following) or following.retry_ms > me.now.monotonic_ms:
        return
    request: Request = _fetch(me)
    if following.snapshot is not None:
        request = SnapshotFetch(
            cluster_id=me.identity.cluster_id,
            replica=me.identity.key,
            epoch=me.epoch,
            snapshot=following.snapshot.snapshot,
            position=following.snapshot.position,
            max_bytes=me.settings.snapshot_fetch_bytes,
        )
    following.asking = me.send(following.leader_id, request, me.settings.fetch_timeout_ms)
    if following.asking is None:
        following.retry_ms = me.now.monotonic_ms + me.settings.fetch_wait_ms


def _may_ask(me: "Participant", following: Following) -> bool:
    """A fetch acknowledges everything before it, so everything before it is on the disk first."""
    return following.asking is None and _is_flushed(me)


def _is_flushed(me: "Participant") -> bool:
    return me.journal.flushed_end == me.journal.end_offset


def _search(me: "Participant") -> None:
    """Ask one voter after the other who leads. One that lives answers at once, so the next has its turn soon: the last
    leader, which may stand still for a long time, is asked like any other. The slower they are the longer we wait."""
    if me.searching is not None or me.search_ms > me.now.monotonic_ms or not _is_flushed(me):
        return
    others = sorted(voter_id for voter_id in me.voters if voter_id != me.node_id)
    if others:
        me.search_turn += 1
        patience_ms = me.settings.fetch_timeout_ms / QUICK_SEARCH * 2 ** min(me.search_losses, 10)
        timeout_ms = min(patience_ms, me.settings.fetch_timeout_ms)
        me.searching = me.send(others[me.search_turn % len(others)], _who_leads(me), timeout_ms)
    if me.searching is None:
        me.search_ms = me.now.monotonic_ms + me.settings.fetch_wait_ms


def _who_leads(me: "Participant") -> QuorumFetch:
    """A question, answered at once: records that come with the answer are not taken, so as few as possible do."""
    return replace(_fetch(me), max_wait_ms=0, max_bytes=1)


def _fetch(me: "Participant") -> QuorumFetch:
    position = me.journal.position
    return QuorumFetch(
        cluster_id=me.identity.cluster_id,
        replica=me.identity.key,
        epoch=me.epoch,
        offset=position.end_offset,
        last_fetched_epoch=position.epoch,
        high_watermark=me.high_watermark,
        max_bytes=me.settings.fetch_bytes,
        max_wait_ms=me.settings.fetch_wait_ms,
    )


def _directory_of(me: "Participant", voter_id: BrokerId) -> bytes:
    return me.voters[voter_id].directory_id if me.voters.is_recorded else me.met.get(voter_id, ZERO_UUID)
