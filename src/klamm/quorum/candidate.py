"""Standing for election: who was asked, who agreed, and when to ask again.

A round before the election (pre-vote) asks whether a vote would be granted, and changes nothing anywhere: whoever asks
in vain has disturbed nobody. Those who refuse are asked again soon, because what they know of the old leader may be
about to change. In the election itself a voter answers once; only an answer that was lost is asked for again.

Nobody is elected whose log is behind: later epoch first, then longer. So a leader has everything that was committed.
"""

from klamm.ids import BrokerId, Epoch
from klamm.quorum.messages import LogPosition, Outgoing
from klamm.quorum.voters import Voters

INSISTING_MS = 50.0
"""Two that stand at the same moment would take each other's votes. For this long the better one stands its ground, and
who has encouraged another does not stand itself."""

SLOWEST_RETRY_MS = 200.0


def is_as_far(candidate: LogPosition, own: LogPosition) -> bool:
    """Whether a voter with this log may vote for a candidate with that one."""
    return candidate >= own


def goes_first(own: LogPosition, own_id: BrokerId, other: LogPosition, other_id: BrokerId) -> bool:
    """Which of two that both stand should go on: the longer log, or else the lower number."""
    return (own, -own_id) > (other, -other_id)


class Round:
    """One attempt. It is over at `deadline_ms`."""

    __slots__ = (
        "_own_id",
        "_refusals",
        "_retry_ms",
        "_silent",
        "began_ms",
        "deadline_ms",
        "epoch",
        "granted",
        "pre_vote",
        "refused",
        "voters",
        "waiting",
    )

    def __init__(
        self, voters: Voters, own_id: BrokerId, epoch: Epoch, *, pre_vote: bool, now_ms: float, deadline_ms: float
    ) -> None:
        assert own_id in voters
        self._own_id = own_id
        self.voters = voters
        self.epoch = epoch
        self.pre_vote = pre_vote
        self.began_ms = now_ms
        self.deadline_ms = deadline_ms
        self.granted = {own_id}
        self.refused: set[BrokerId] = set()
        self._silent: set[BrokerId] = set()
        self.waiting: dict[BrokerId, Outgoing] = {}
        self._retry_ms = {voter_id: now_ms for voter_id in voters if voter_id != own_id}
        self._refusals: dict[BrokerId, int] = {}

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.needed

    @property
    def is_lost(self) -> bool:
        """Too many have refused, or do not answer."""
        return len(self.voters) - len(self.refused | self._silent) < self.voters.needed

    def to_ask(self, now_ms: float) -> list[BrokerId]:
        return [voter_id for voter_id, due_ms in sorted(self._retry_ms.items()) if due_ms <= now_ms]

    def asked(self, voter_id: BrokerId, outgoing: Outgoing) -> None:
        del self._retry_ms[voter_id]
        self.waiting[voter_id] = outgoing

    def unreachable(self, voter_id: BrokerId, now_ms: float, retry_ms: float) -> None:
        """Nobody knows yet where it is."""
        self._again(voter_id, now_ms, retry_ms)

    def grant(self, voter_id: BrokerId) -> None:
        del self.waiting[voter_id]
        self.refused.discard(voter_id)
        self._silent.discard(voter_id)
        self.granted.add(voter_id)

    def refuse(self, voter_id: BrokerId, now_ms: float, retry_ms: float) -> None:
        del self.waiting[voter_id]
        self._silent.discard(voter_id)
        self.refused.add(voter_id)
        if self.pre_vote:
            self._again(voter_id, now_ms, retry_ms)

    def lose(self, voter_id: BrokerId, now_ms: float, retry_ms: float) -> None:
        del self.waiting[voter_id]
        self._silent.add(voter_id)
        self._again(voter_id, now_ms, retry_ms)

    def is_there(self, voter_id: BrokerId, now_ms: float) -> None:
        """It has just spoken to us: if it could not be reached before, it can be now."""
        if voter_id in self._retry_ms:
            self._retry_ms[voter_id] = now_ms
            self._refusals.pop(voter_id, None)

    def renew(self, now_ms: float, deadline_ms: float) -> None:
        """Begin again. Who agreed may have changed its mind; who does not answer is still asked no faster."""
        assert self.pre_vote
        self.began_ms, self.deadline_ms = now_ms, deadline_ms
        for voter_id in self.granted - {self._own_id}:
            self._retry_ms[voter_id] = now_ms
        self.granted = {self._own_id}
        self.refused = set()

    def next_deadline_ms(self) -> float:
        return min(self.deadline_ms, *self._retry_ms.values()) if self._retry_ms else self.deadline_ms

    def _again(self, voter_id: BrokerId, now_ms: float, retry_ms: float) -> None:
        """Quickly at first, then more and more slowly."""
        times = self._refusals[voter_id] = self._refusals.get(voter_id, 0) + 1
        self._retry_ms[voter_id] = now_ms + min(retry_ms * 2 ** min(max(times - 4, 0), 8), SLOWEST_RETRY_MS)
