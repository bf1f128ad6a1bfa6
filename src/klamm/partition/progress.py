"""What a leader knows of one follower: how far it is, and when it had last caught up.

A fetch at offset N says that the follower holds everything below N. It is the only acknowledgement there is. It has
caught up at a moment when it holds all that the leader held at that moment. Small writes at a high rate keep every
fetch a little behind, so a fetch that reaches where the leader was at the fetch before has caught up then.

Nothing is believed of a follower from before this leader's epoch: it may have been another life of it.
"""

from klamm.ids import NO_OFFSET, BrokerId, Offset

NEVER_MS = float("-inf")
NO_BROKER_EPOCH = -1


class Progress:
    __slots__ = (
        "_fetched_ms",
        "_leader_end_then",
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "start_offset",
    )

    def __init__(self, broker_id: BrokerId) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NO_BROKER_EPOCH
        self.end_offset: Offset = NO_OFFSET
        self.start_offset: Offset = NO_OFFSET
        self.caught_up_ms = NEVER_MS
        self._fetched_ms = NEVER_MS
        self._leader_end_then: Offset = 2**63

    def fetched(
        self, offset: Offset, start_offset: Offset, broker_epoch: int, leader_end: Offset, now_ms: float
    ) -> None:
        """It asked for records from this offset on, when the leader's log ended at `leader_end`."""
        if offset >= leader_end:
            self.caught_up_ms = now_ms
        elif offset >= self._leader_end_then:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.end_offset = offset
        self.start_offset = start_offset
        self.broker_epoch = broker_epoch
        self._leader_end_then = leader_end
        self._fetched_ms = now_ms

    def leader_grows(self, leader_end: Offset, now_ms: float) -> None:
        """The leader, whose log ended at `leader_end`, is about to be ahead: until now this follower had caught up. A
        follower of an idle partition has nothing to say for hours and is not behind."""
        if self.end_offset >= leader_end:
            self.caught_up_ms = now_ms

    def joined(self, now_ms: float) -> None:
        """It is counted in sync, perhaps without having been level with the leader; it has its time from now on."""
        self.caught_up_ms = max(self.caught_up_ms, now_ms)

    def is_caught_up(self, leader_end: Offset, now_ms: float, max_lag_ms: float) -> bool:
        return self.end_offset >= leader_end or now_ms - self.caught_up_ms <= max_lag_ms

    def is_heard(self, leader_end: Offset, now_ms: float, max_lag_ms: float) -> bool:
        """Whether it goes on asking, or has no reason to. What one that fell silent once held says nothing of what it
        will do; to wait for it would be in vain."""
        return self.end_offset >= leader_end or now_ms - self._fetched_ms <= max_lag_ms

    def __repr__(self) -> str:
        return f"<follower {self.broker_id} at {self.end_offset} caught_up_ms={self.caught_up_ms:.0f}>"
