"""Known mistakes, made on purpose: the drawn lives show every one of them. A check that cannot fail checks nothing.

Mistakes about wiped disks and changes of voters need rarer coincidences; `test_voters.py` has stories of those.
"""

from collections.abc import Callable
from typing import Any

import pytest

from klamm.quorum import answering, timing
from klamm.quorum.election import Election, UnreadableElection
from klamm.quorum.journal import CommittedHistoryDiffers, Journal, UnreadableMetadata
from klamm.quorum.messages import BeginEpoch, EpochReply, LogPosition, SnapshotId
from klamm.quorum.participant import Participant
from klamm.quorum.voters import Voters
from tests.quorum.chaos import Chaos

MOST_LIVES = 400


def everybody_is_as_far(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answering, "is_as_far", lambda candidate, own: True)


def votes_are_not_written_down(patch: pytest.MonkeyPatch) -> None:
    def remember(me: Participant, epoch: int, voted: Any, leader_id: int = -1) -> None:
        me.election = Election(epoch, leader_id, voted.node_id, voted.directory_id)

    patch.setattr(Participant, "_remember", remember)


def one_vote_less_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Voters, "needed", property(lambda voters: max(len(voters) // 2, 1)))


def followers_acknowledge_before_they_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(timing, "_is_flushed", lambda me: True)


def a_leader_counts_what_it_has_not_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Journal, "flushed_end", property(lambda journal: journal.end_offset))


def nobody_hears_that_histories_part(patch: pytest.MonkeyPatch) -> None:
    judged = Journal.judged

    def blind(journal: Journal, offset: int, last_epoch: int) -> LogPosition | SnapshotId | None:
        found = judged(journal, offset, last_epoch)
        return None if isinstance(found, LogPosition) and offset <= journal.end_offset else found

    patch.setattr(Journal, "judged", blind)


def whoever_asks_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Participant, "believes_in_leader", lambda me: False)


def whatever_is_claimed_is_believed(patch: pytest.MonkeyPatch) -> None:
    def begin_quorum_epoch(me: Participant, request: BeginEpoch) -> EpochReply:
        if request.epoch > me.epoch and request.leader_id in me.voters and request.leader_id != me.node_id:
            me.become_follower(request.epoch, request.leader_id)
        return EpochReply(me.epoch, me.leader_id)

    patch.setattr(answering, "begin_quorum_epoch", begin_quorum_epoch)


MISTAKES: list[Callable[[pytest.MonkeyPatch], None]] = [
    everybody_is_as_far,
    votes_are_not_written_down,
    one_vote_less_is_enough,
    followers_acknowledge_before_they_flush,
    a_leader_counts_what_it_has_not_flushed,
    nobody_hears_that_histories_part,
    whoever_asks_is_believed,
    whatever_is_claimed_is_believed,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_noticed(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    for seed in range(MOST_LIVES):
        try:
            Chaos(seed).run()
        except (AssertionError, UnreadableMetadata, UnreadableElection, CommittedHistoryDiffers):
            print("noticed in life", seed)
            return
    pytest.fail(f"{MOST_LIVES} lives with this mistake looked right")
