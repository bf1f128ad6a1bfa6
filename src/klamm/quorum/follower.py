"""Following a leader: one fetch at a time, and what is known of whether the leader still lives.

A leader that has not answered for the fetch timeout may be gone: its followers stand for election. If its process is
known to be dead (`leader_is_gone`) they stand at once. Until then a follower believes in its leader and encourages
nobody to replace it.
"""

from klamm.ids import BrokerId
from klamm.quorum.messages import Outgoing
from klamm.quorum.snapshot import SnapshotFetching


class Following:
    __slots__ = (
        "_losses",
        "_not_before_ms",
        "_timeout_ms",
        "asking",
        "has_heard",
        "heard_ms",
        "leader_id",
        "leader_is_gone",
        "retry_ms",
        "snapshot",
        "stand_ms",
    )

    def __init__(self, leader_id: BrokerId, now_ms: float, timeout_ms: float) -> None:
        self.leader_id = leader_id
        self.has_heard = False
        """From the leader itself, not only from others that it leads."""
        self.heard_ms = now_ms
        self._timeout_ms = timeout_ms
        self.leader_is_gone = False
        self.stand_ms: float | None = None
        """When to stand, if that is sooner than the timeout."""
        self.asking: Outgoing | None = None
        self.retry_ms = now_ms
        self.snapshot: SnapshotFetching | None = None
        self._losses = 0
        self._not_before_ms = 0.0

    @property
    def deadline_ms(self) -> float:
        """When the leader has to be replaced."""
        timeout_ms = self.heard_ms + self._timeout_ms
        due_ms = timeout_ms if self.stand_ms is None else min(self.stand_ms, timeout_ms)
        return max(due_ms, self._not_before_ms)

    def believes(self, now_ms: float) -> bool:
        return self.has_heard and not self.leader_is_gone and now_ms < self.heard_ms + self._timeout_ms

    def heard(self, now_ms: float) -> None:
        self.heard_ms = self.retry_ms = now_ms
        self.has_heard = True
        self.leader_is_gone = False
        self.stand_ms = None
        self._losses = 0

    def hurry(self, now_ms: float) -> None:
        """Somebody says something about the leader: ask it, if it is not being asked already."""
        if self.asking is None:
            self.retry_ms = now_ms

    def lost(self, now_ms: float, backoff_ms: float) -> None:
        """Ask again: at once the first time, because dialling anew shows whether the leader is gone."""
        self.asking = None
        self.retry_ms = now_ms + (backoff_ms if self._losses else 0)
        self._losses += 1

    def make_way(self, until_ms: float) -> None:
        """Another follower stands, with our support."""
        self._not_before_ms = until_ms

    def gone(self, stand_ms: float) -> None:
        self.leader_is_gone = True
        if self.stand_ms is None:
            self.stand_ms = stand_ms
