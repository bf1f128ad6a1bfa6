"""Changing who votes: one voter at a time, and only under a leader that a majority has confirmed.

A change counts as soon as it is in the log; the next one has to wait until it is committed, so that majorities before
and after always share a voter. A leader that is removed leads until its removal is committed, then resigns.

A voter that comes back without its disk is somebody else under the same number. Once it has caught up, the leader
removes the old identity and, when that is committed, adds the new one. A leader that comes in between need not know
that: whoever is configured as a voter and has caught up is added. Only who was removed with the disk it has stays
removed, as long as the log tells of it; to remove a node for good, take it out of `controller.quorum.voters` too.
"""

from typing import TYPE_CHECKING

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID, BrokerId, Offset, Uuid
from klamm.quorum.facts import VotersChanged
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.leader import Leading
from klamm.quorum.voters import Voter, Voters
from klamm.records.control import quorum_batch

if TYPE_CHECKING:
    from klamm.quorum.participant import Participant


def add_voter(me: "Participant", voter: Voter) -> Offset:
    """The offset at which it votes, once that is committed."""
    leading = _ready_for_change(me)
    if voter.node_id in me.voters:
        raise KafkaError(ErrorCode.DUPLICATE_VOTER, f"Node {voter.node_id} is a voter already.")
    if not _is_caught_up(me, leading, voter.key):
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT, f"Node {voter.node_id} has to follow the metadata log before it may vote."
        )
    return _write(me, me.voters.with_voter(voter), f"node {voter.node_id} was added")


def remove_voter(me: "Participant", node_id: BrokerId, directory_id: Uuid) -> Offset:
    _ready_for_change(me)
    if not me.voters.has(ReplicaKey(node_id, directory_id)):
        raise KafkaError(ErrorCode.VOTER_NOT_FOUND, f"Node {node_id} is not a voter with this directory.")
    if len(me.voters) == 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The last voter cannot be removed.")
    return _write(me, me.voters.without(node_id), f"node {node_id} was removed")


def replace_returned(me: "Participant", leading: Leading, key: ReplicaKey) -> None:
    """This replica has fetched: if it is a voter that lost its disk, one more step towards its return."""
    if me.voters.has(key) or key.node_id not in me.journal.voters.configured or not _may_change(me, leading):
        return
    if not _is_caught_up(me, leading, key) or key.directory_id == ZERO_UUID:
        return
    old = me.voters.get(key.node_id)
    is_free = not me.journal.voters.has_had(key) if old is None else _is_silent(me, leading, old) and len(me.voters) > 1
    if not is_free:
        return
    if key not in leading.confirmed:
        # Anybody can fetch in its name. What the node itself answers, where it is configured to be, is what counts.
        leading.ask_itself(key, me.now.monotonic_ms)
    elif old is not None:
        _write(me, me.voters.without(key.node_id), f"node {key.node_id} lost its disk and has a new one")
    else:
        configured = me.journal.voters.configured[key.node_id]
        voter = configured._replace(directory_id=key.directory_id)
        _write(me, me.voters.with_voter(voter), f"node {key.node_id} has caught up on its new disk")


def committed(me: "Participant") -> None:
    """More was committed: a leader that is no voter any more has done its last duty."""
    if me.journal.voters.latest_offset < me.high_watermark and not me.voters.has(me.identity.key):
        me.resign("it is no voter any more")


def _ready_for_change(me: "Participant") -> Leading:
    leading = me.leading
    if leading is None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if not _may_change(me, leading):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The last change of voters is not committed yet.")
    return leading


def _may_change(me: "Participant", leading: Leading) -> bool:
    is_confirmed = me.high_watermark > leading.start_offset
    return is_confirmed and me.voters.is_recorded and me.journal.voters.latest_offset < me.high_watermark


def _is_caught_up(me: "Participant", leading: Leading, key: ReplicaKey) -> bool:
    """It has everything that is committed, and did fetch a moment ago."""
    progress = leading.replicas.get(key)
    if progress is None or progress.fetched_ms < 0:
        return False
    silent_ms = me.now.monotonic_ms - progress.fetched_ms
    return progress.end_offset >= me.high_watermark and silent_ms <= me.settings.fetch_timeout_ms


def _is_silent(me: "Participant", leading: Leading, voter: Voter) -> bool:
    """The old disk's node does not fetch any more: nobody uses it beside the new one."""
    progress = leading.replicas.get(voter.key)
    heard_ms = max(progress.fetched_ms if progress else 0.0, leading.began_ms)
    return me.now.monotonic_ms - heard_ms > me.settings.fetch_timeout_ms


def _write(me: "Participant", voters: Voters, reason: str) -> Offset:
    batch = quorum_batch([voters.record()], timestamp=me.now.wall_ms, leader_epoch=me.epoch)
    offset = me.journal.append(batch, (), me.epoch, me.now)
    me.tell(VotersChanged(tuple(voters), reason))
    return offset
