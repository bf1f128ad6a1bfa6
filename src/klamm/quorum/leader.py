"""Leading: how far every replica is, what a majority holds, and whether a majority still listens.

A fetch at an offset is the only acknowledgement there is: everything below it is on that replica's disk. What more
than half of the voters hold is committed, once the leader's own epoch has begun at or below it: a majority for what an
earlier epoch wrote proves nothing by itself (Raft, figure 8).

A leader that a majority has not fetched from for a while may have been replaced without knowing. It resigns rather than
keep its clients waiting (check quorum).
"""

from dataclasses import dataclass

from klamm.ids import BrokerId, Epoch, Now, Offset
from klamm.quorum.claims import PAUSE_MS
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.majority import committed_offset
from klamm.quorum.messages import Outgoing, ReplicaDescription
from klamm.quorum.voters import Voter, Voters

OBSERVER_SESSION_MS = 300_000.0
"""An observer that was not heard of for so long is no longer described."""

MOST_REPLICAS = 1_000
"""Anybody may fetch and call himself an observer: so many are remembered, those that fetched last."""


@dataclass(slots=True)
class Progress:
    """What a leader knows of one replica."""

    end_offset: Offset = 0
    fetched_ms: float = -1.0
    """Monotonic; -1 if it has not fetched from this leader yet."""
    fetched_wall_ms: int = -1
    caught_up_wall_ms: int = -1
    _end_at_last_fetch: Offset = -1
    """The leader's, when the replica fetched last: having all of that, it was caught up then."""

    def note(self, offset: Offset, leader_end: Offset, now: Now) -> None:
        if offset >= leader_end:
            self.caught_up_wall_ms = now.wall_ms
        elif self.fetched_wall_ms >= 0 and offset >= self._end_at_last_fetch:
            self.caught_up_wall_ms = max(self.caught_up_wall_ms, self.fetched_wall_ms)
        self.end_offset = offset
        self.seen(now)
        self._end_at_last_fetch = leader_end

    def seen(self, now: Now) -> None:
        self.fetched_ms = now.monotonic_ms
        self.fetched_wall_ms = now.wall_ms


class Leading:
    def __init__(self, own: ReplicaKey, epoch: Epoch, start_offset: Offset, now: Now) -> None:
        self.own = own
        self.epoch = epoch
        self.start_offset = start_offset
        """Where this epoch begins, with its LeaderChange."""
        self.began_ms = now.monotonic_ms
        self.replicas: dict[ReplicaKey, Progress] = {}
        self.telling: dict[BrokerId, Outgoing] = {}
        """Voters who are being told that this epoch has begun."""
        self._tell_ms: dict[BrokerId, float] = {}
        self._to_ask: dict[BrokerId, tuple[ReplicaKey, float]] = {}
        """Replicas in whose name somebody said something that is to be heard from themselves, and from when on."""
        self._askable_ms: dict[BrokerId, float] = {}
        self.confirmed: set[ReplicaKey] = set()
        """Replicas that have answered, where their node is known to be, that it is they."""

    # What fetches say.

    def progress(self, key: ReplicaKey, voters: Voters) -> Progress:
        found = self.replicas.get(key)
        if found is None:
            if len(self.replicas) >= MOST_REPLICAS:
                observers = [each for each in self.replicas if not voters.has(each)]
                del self.replicas[min(observers, key=lambda each: self.replicas[each].fetched_ms)]
            found = self.replicas[key] = Progress()
        return found

    def committed(self, voters: Voters, own_flushed_end: Offset) -> Offset:
        """Everything below it is on the disks of more than half of the voters."""
        ends = [own_flushed_end if each.key == self.own else self._end_of(each) for each in voters.values()]
        return committed_offset(ends)

    def supported_until_ms(self, voters: Voters, patience_ms: float) -> float:
        """When more than half of the voters, this one included, will have been silent for too long."""
        heard = sorted((self._heard_ms(voter) for voter in voters.values()), reverse=True)
        return heard[len(heard) // 2] + patience_ms

    def forget_old_observers(self, voters: Voters, now_ms: float) -> None:
        for key, progress in list(self.replicas.items()):
            if not voters.has(key) and now_ms - max(progress.fetched_ms, self.began_ms) > OBSERVER_SESSION_MS:
                del self.replicas[key]

    def successors(self, voters: Voters) -> list[ReplicaKey]:
        """Who should lead next: those with the longest logs."""
        others = [voter for voter in voters.values() if voter.key != self.own]
        return [voter.key for voter in sorted(others, key=lambda voter: (-self._end_of(voter), voter.node_id))]

    def described(self, voters: Voters, own_end: Offset, now: Now) -> tuple[list[ReplicaDescription], ...]:
        """Voters and observers."""
        own = ReplicaDescription(self.own, own_end, now.wall_ms, now.wall_ms)
        described = {key: _described(key, progress) for key, progress in self.replicas.items()}
        described[self.own] = own
        of_voters = [described.get(voter.key) or ReplicaDescription(voter.key, -1) for voter in voters.values()]
        observers = [each for key, each in sorted(described.items()) if not voters.has(key)]
        return of_voters, observers

    # Who has to be told that this epoch has begun.

    def to_tell(self, voters: Voters, now_ms: float, patience_ms: float) -> list[ReplicaKey]:
        """Voters that do not fetch, though they could know by now, and whoever is to speak for himself."""
        found = {}
        for voter in voters.values():
            due_ms = self._tell_due_ms(voter, patience_ms)
            if due_ms is not None and due_ms <= now_ms:
                found[voter.node_id] = voter.key
        for node_id, (key, due_ms) in self._to_ask.items():
            if due_ms <= now_ms and node_id not in self.telling:
                found[node_id] = key
        return list(found.values())

    def told(self, node_id: BrokerId, next_ms: float) -> None:
        """It was told, or could not be: when to do it again if it does not fetch."""
        self.telling.pop(node_id, None)
        self._tell_ms[node_id] = next_ms

    def tells(self, node_id: BrokerId, outgoing: Outgoing | None, now_ms: float) -> None:
        """It is being told, or nobody knows where it is."""
        if outgoing is not None:
            self.telling[node_id] = outgoing
        self._to_ask.pop(node_id, None)
        self._askable_ms[node_id] = now_ms + PAUSE_MS

    def ask_itself(self, key: ReplicaKey, now_ms: float) -> None:
        """Somebody says in its name that it is ahead, or has a new disk. It may have been the node: let it say so."""
        due_ms = max(now_ms, self._askable_ms.get(key.node_id, now_ms))
        self._to_ask[key.node_id] = key, min(due_ms, self._to_ask.get(key.node_id, (key, due_ms))[1])

    def next_tell_ms(self, voters: Voters, patience_ms: float) -> float | None:
        due = [self._tell_due_ms(voter, patience_ms) for voter in voters.values()]
        asked = [due_ms for node_id, (_, due_ms) in self._to_ask.items() if node_id not in self.telling]
        return min((*asked, *(each for each in due if each is not None)), default=None)

    def _tell_due_ms(self, voter: Voter, patience_ms: float) -> float | None:
        if voter.key == self.own or voter.node_id in self.telling:
            return None
        due_ms = self._tell_ms.get(voter.node_id, self.began_ms)
        progress = self.replicas.get(voter.key)
        return max(due_ms, progress.fetched_ms + patience_ms) if progress and progress.fetched_ms >= 0 else due_ms

    def _end_of(self, voter: Voter) -> Offset:
        progress = self.replicas.get(voter.key)
        return progress.end_offset if progress is not None else 0

    def _heard_ms(self, voter: Voter) -> float:
        if voter.key == self.own:
            return float("inf")
        progress = self.replicas.get(voter.key)
        return self.began_ms if progress is None else max(progress.fetched_ms, self.began_ms)


def _described(key: ReplicaKey, progress: Progress) -> ReplicaDescription:
    return ReplicaDescription(key, progress.end_offset, progress.fetched_wall_ms, progress.caught_up_wall_ms)
