"""How long a member may be silent, and how long it may take.

One that sends no heartbeat for its session is gone. One that is to give partitions up has its rebalance timeout for
that, because somebody waits for them. A member of the classic protocol has as long to rejoin when it has been told to,
and to sync after it has.
"""

from klamm.coordinator.groups.consumer_member import Member
from klamm.coordinator.groups.group import Surroundings, TimerName
from klamm.ids import Now

SESSION, REVOCATION, REJOIN, SYNC = "consumer session", "consumer revocation", "consumer rejoin", "consumer sync"
TIMERS = (SESSION, REVOCATION, REJOIN, SYNC)
AGAIN_MS = 500
"""After a timer rang it is set again, in case what it brought about is not committed."""


class MemberTimers:
    """The timers of one group's members, in the shard's clock."""

    def __init__(self, group_id: str, surroundings: Surroundings) -> None:
        self._group_id = group_id
        self._surroundings = surroundings

    def extend_session(self, member: Member, now: Now) -> None:
        classic = member.profile.classic
        session_ms = self._surroundings.settings.consumer_session_ms if classic is None else classic.session_timeout_ms
        self.set(SESSION, member, session_ms, now)

    def expect_revocation(self, member: Member, now: Now) -> None:
        """A member of the classic protocol is told with its heartbeats, and has its time to rejoin."""
        if not member.is_classic:
            self.set(REVOCATION, member, member.profile.rebalance_timeout_ms, now)

    def expect_rejoin(self, member: Member, now: Now) -> None:
        """From when it was told first."""
        if not self._surroundings.timers.is_set(TimerName(REJOIN, self._group_id, member.member_id)):
            self.set(REJOIN, member, member.profile.rebalance_timeout_ms, now)

    def expect_sync(self, member: Member, now: Now) -> None:
        self.set(SYNC, member, member.profile.rebalance_timeout_ms, now)

    def set(self, kind: str, member: Member, delay_ms: int, now: Now) -> None:
        name = TimerName(kind, self._group_id, member.member_id)
        self._surroundings.timers.set(name, now.monotonic_ms + delay_ms)

    def take_off(self, kind: str, member_id: str) -> None:
        self._surroundings.timers.take_off(TimerName(kind, self._group_id, member_id))

    def forget(self, member_id: str) -> None:
        for kind in TIMERS:
            self.take_off(kind, member_id)
