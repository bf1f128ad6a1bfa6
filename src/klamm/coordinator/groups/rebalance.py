"""When a classic group's next generation begins, who is in it, and who is given up.

The first members of an empty group wait a little for more (`group.initial.rebalance.delay.ms`, again for each that
comes, at most for their rebalance timeout). Later every member that is there is waited for, at most for the longest
rebalance timeout among them; who has not joined by then is removed, except static members, who have until the end of
their session. After the generation has begun, who does not sync within the same time is removed.
"""

from klamm.coordinator.groups.classic_member import ClassicMember
from klamm.coordinator.groups.classic_state import ClassicState, State
from klamm.coordinator.groups.group import Surroundings, TimerName
from klamm.coordinator.wishes import NO_MEMBER, Answered, Joined, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from klamm.machine import Decision

SESSION, JOIN, SYNC = "session", "join", "sync"
LEAST_AGAIN_MS = 1_000
"""A member may say that it needs no time at all to join. Looking for it without a pause would leave none to others."""


class Rebalance:
    def __init__(self, group: ClassicState, around: Surroundings) -> None:
        self._group = group
        self._around = around
        self._unsynced: set[str] = set()
        """Members of this generation that have not asked for their assignment."""
        self._is_first = False
        """Whether the group was empty when members began to join."""
        self._first_ends_ms = 0.0
        self._somebody_came = False

    # Beginning.

    def somebody_new(self) -> None:
        self._somebody_came = True

    def maybe_begin(self, now: Now) -> Verdict:
        """Somebody joined: everybody has to, if they do not already."""
        return self.maybe_complete(now) if self._group.state is State.PREPARING else self.begin(now)

    def begin(self, now: Now) -> Verdict:
        group = self._group
        waiting = self._release_syncs(now) if group.state is State.COMPLETING else []
        self._around.timers.take_off(self._timer(SYNC))
        self._is_first = group.state is State.EMPTY
        group.state = State.PREPARING
        if self._is_first:
            delay_ms = self._around.settings.initial_rebalance_delay_ms
            self._first_ends_ms = now.monotonic_ms + max(group.rebalance_timeout_ms, delay_ms)
            self._somebody_came = False
            self._around.timers.set(self._timer(JOIN), now.monotonic_ms + delay_ms)
            return Decision(waiting)
        verdict = self.maybe_complete(now)
        if group.state is State.PREPARING:
            self._around.timers.set(self._timer(JOIN), now.monotonic_ms + group.rebalance_timeout_ms)
        verdict.response[:0] = waiting
        return verdict

    def maybe_complete(self, now: Now) -> Verdict:
        group = self._group
        if group.state is State.PREPARING and not self._is_first and not group.awaited and not group.pending:
            return self._complete(now)
        return Decision([])

    def after_loss(self, now: Now) -> Verdict:
        """Members are gone: the others share what they had."""
        group = self._group
        if group.state in (State.STABLE, State.COMPLETING):
            return self.begin(now)
        if group.state is State.PREPARING and not group.awaited and not group.pending and not self._is_first:
            return self._complete(now)
        return Decision([])

    # Completing.

    def _complete(self, now: Now) -> Verdict:
        group = self._group
        self._around.timers.take_off(self._timer(JOIN))
        for member in group.awaited:
            if not member.is_static:
                group.remove(member.member_id)
                self.forget(member.member_id)
        leader = group.members.get(group.leader or "")
        if leader is None or leader.joining is None:
            joined = next((member for member in group if member.joining is not None), None)
            if joined is None and len(group):
                # Only static members are left, and none of them came: their sessions decide.
                again_ms = max(group.rebalance_timeout_ms, LEAST_AGAIN_MS)
                self._around.timers.set(self._timer(JOIN), now.monotonic_ms + again_ms)
                return Decision([])
            group.leader = joined.member_id if joined is not None else None
        self._is_first = False
        if not len(group):
            return self._become_empty(now)
        return self._begin_generation(now)

    def _become_empty(self, now: Now) -> Verdict:
        group = self._group
        group.state = State.EMPTY
        group.protocol = None
        group.generation += 1
        group.since_ms = now.wall_ms
        return Decision([], [group.record(group.generation, {}, now.wall_ms)])

    def _begin_generation(self, now: Now) -> Verdict:
        group = self._group
        group.generation += 1
        group.protocol = group.chosen_protocol()
        group.state = State.COMPLETING
        self._unsynced = set(group.members)
        answers = []
        for member in group:
            if member.joining is not None:
                answers.append(Answered(member.joining, self.joined(member)))
            member.joining = None
            member.is_new = False
            self.expect(member.member_id, member.session_timeout_ms, now)
        self._around.timers.set(self._timer(SYNC), now.monotonic_ms + group.rebalance_timeout_ms)
        return Decision(answers)

    def joined(self, member: ClassicMember) -> Joined:
        group = self._group
        leads = member.member_id == group.leader
        return Joined(
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol,
            group.leader or "",
            [each.as_joined(group.protocol) for each in group] if leads else (),
        )

    # Syncing.

    def synced(self, member_id: str) -> None:
        self._unsynced.discard(member_id)
        if not self._unsynced:
            self._around.timers.take_off(self._timer(SYNC))

    def _release_syncs(self, now: Now) -> list[Answered]:
        """They have to join again, and may speak again."""
        waiting = []
        for member in self._group:
            if member.syncing is not None:
                waiting.append(Answered(member.syncing, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)))
                self.expect(member.member_id, member.session_timeout_ms, now)
            member.syncing = None
            member.assignment = b""
        return waiting

    # Members that are silent, and those that go.

    def expect(self, member_id: str, within_ms: float, now: Now) -> None:
        """It has so long to be heard of again."""
        self._around.timers.set(self._timer(SESSION, member_id), now.monotonic_ms + within_ms)

    def expect_everybody(self, now: Now) -> None:
        for member in self._group:
            self.expect(member.member_id, member.session_timeout_ms, now)

    def forget(self, member_id: str) -> None:
        self._unsynced.discard(member_id)
        self._around.timers.take_off(self._timer(SESSION, member_id))

    def remove(self, member: ClassicMember) -> list[Answered]:
        """Whoever waits in its name hears that it is no member, and joins again if it is alive."""
        waiting = [each for each in (member.joining, member.syncing) if each is not None]
        self._group.remove(member.member_id)
        self.forget(member.member_id)
        return [Answered(ticket, KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)) for ticket in waiting]

    def rang(self, timer: TimerName, now: Now) -> Verdict:
        if timer.kind == SESSION:
            return self._session_ended(timer.member_id, now)
        if timer.kind == JOIN:
            return self._joining_ended(now)
        if timer.kind == SYNC:
            return self._syncing_ended(now)
        # Left over from the time when this was a group of the newer protocol.
        return Decision([])

    def _session_ended(self, member_id: str, now: Now) -> Verdict:
        group = self._group
        if member_id in group.pending:
            group.pending.discard(member_id)
            return self.maybe_complete(now)
        member = group.members.get(member_id)
        if member is None:
            return Decision([])
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            # It waits for us, so it cannot speak. It has a new session when it is answered.
            return Decision([])
        answers = self.remove(member)
        verdict = self.after_loss(now)
        verdict.response[:0] = answers
        return verdict

    def _joining_ended(self, now: Now) -> Verdict:
        if self._group.state is not State.PREPARING:
            return Decision([])
        if self._is_first and self._somebody_came and now.monotonic_ms < self._first_ends_ms:
            self._somebody_came = False
            delay_ms = self._around.settings.initial_rebalance_delay_ms
            again_ms = min(now.monotonic_ms + delay_ms, self._first_ends_ms)
            self._around.timers.set(self._timer(JOIN), again_ms)
            return Decision([])
        return self._complete(now)

    def _syncing_ended(self, now: Now) -> Verdict:
        group = self._group
        if group.state not in (State.COMPLETING, State.STABLE) or not self._unsynced:
            return Decision([])
        answers: list[Answered] = []
        for member_id in sorted(self._unsynced):
            if member_id in group.members:
                answers += self.remove(group.members[member_id])
        self._unsynced.clear()
        verdict = self.begin(now)
        verdict.response[:0] = answers
        return verdict

    def _timer(self, kind: str, member_id: str = NO_MEMBER) -> TimerName:
        return TimerName(kind, self._group.group_id, member_id)
