"""A classic group: its members join, one of them assigns, and each is told its part.

A rebalance has two halves. In the first everybody joins (`rebalance.py` knows when that is complete) and hears the new
generation; the leader alone hears who the members are and what each said about itself. In the second everybody syncs,
and the leader's sync brings the assignments of all. They are written to the log, and when that is committed everybody
who syncs gets its own. What the members say to one another is theirs: the coordinator does not read it.

A member that is not heard of within its session timeout is removed, and the others join again. A static member (one
with an instance id) may go and come back within that time: it gets a new member id and its old assignment, and nobody
else notices.
"""

from klamm.codec.primitives import Malformed
from klamm.coordinator.groups.classic_member import ClassicMember
from klamm.coordinator.groups.classic_state import ClassicState, State
from klamm.coordinator.groups.conversion import ClassicSnapshot, ClassicSnapshotMember
from klamm.coordinator.groups.group import CLASSIC, CONSUMER_PROTOCOL_TYPE, Surroundings, TimerName
from klamm.coordinator.groups.rebalance import Rebalance
from klamm.coordinator.groups.subscription import read_subscription
from klamm.coordinator.memory import PENDING_BYTES
from klamm.coordinator.records import GroupMetadataKey, GroupMetadataValue, GroupRecord
from klamm.coordinator.wishes import (
    NO_GENERATION,
    NO_MEMBER,
    Answered,
    BeatWish,
    CommitWish,
    DescribedClassicGroup,
    DescribedClassicMember,
    Joined,
    JoinWish,
    LeaveWish,
    LeavingMember,
    LeftMember,
    ListedGroup,
    OffsetsWish,
    Synced,
    SyncWish,
    Ticket,
    Verdict,
    refused,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now, drawn_uuid
from klamm.machine import Decision

NEW_MEMBERS_PATIENCE_MS = 300_000
"""A new member that waits for its first answer cannot send heartbeats, and its connection may be dead."""
LONGEST_NAME = 249
"""So much of a client's name goes into its id, which has to fit into a record, whatever clients call themselves."""


class ClassicGroup:
    kind = CLASSIC

    def __init__(self, group_id: str, around: Surroundings) -> None:
        self.group_id = group_id
        self._around = around
        self._is = ClassicState(group_id)
        self._rebalance = Rebalance(self._is, around)

    @property
    def size_bytes(self) -> int:
        return self._is.members_bytes + PENDING_BYTES * len(self._is.pending)

    def bytes_of(self, member_id: str, instance_id: str | None) -> int:
        group = self._is
        member = group.members.get(group.static.get(instance_id or "", member_id))
        return PENDING_BYTES * (member_id in group.pending) if member is None else member.counted_bytes

    # Joining.

    def join(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        """Raises nothing: whoever cannot join is answered at once, everybody else when the generation begins."""
        group = self._is
        if not self._has_room_for(wish):
            return refused(ticket, ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.could_agree(wish.protocol_type, {name for name, _ in wish.protocols}):
            return refused(ticket, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if wish.member_id == NO_MEMBER:
            return self._join_anew(wish, ticket, now)
        if wish.member_id in group.pending and wish.instance_id is None:
            return self._add(wish.member_id, wish, ticket, now)
        try:
            member = group.member(wish.member_id, wish.instance_id)
        except KafkaError as error:
            return refused(ticket, error.code, error.message)
        return self._join_again(member, wish, ticket, now)

    def _join_anew(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._is
        name = (wish.instance_id or wish.client_id)[:LONGEST_NAME]
        member_id = f"{name}-{_dashed(drawn_uuid(self._around.random))}"
        if wish.instance_id is not None:
            if wish.instance_id in group.static:
                return self._return(member_id, wish, ticket, now)
        elif wish.must_know_its_id:
            # Otherwise a client whose connection breaks while it waits would leave a member behind at every try.
            group.pending.add(member_id)
            self._rebalance.expect(member_id, wish.session_timeout_ms, now)
            return Decision(
                [Answered(ticket, Joined(member_id, NO_GENERATION, None, None, "", error=ErrorCode.MEMBER_ID_REQUIRED))]
            )
        return self._add(member_id, wish, ticket, now)

    def _add(self, member_id: str, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._is
        member = ClassicMember.wishing(member_id, wish)
        member.joining = ticket
        if not len(group):
            group.protocol_type = wish.protocol_type
        group.add(member)
        self._rebalance.somebody_new()
        self._rebalance.expect(member_id, NEW_MEMBERS_PATIENCE_MS, now)
        return self._rebalance.maybe_begin(now)

    def _join_again(self, member: ClassicMember, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._is
        if group.state is State.EMPTY:
            return refused(ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        leads = group.leader == member.member_id
        knows_all = tuple(wish.protocols) == member.protocols
        if (group.state is State.COMPLETING and knows_all) or (group.state is State.STABLE and knows_all and not leads):
            # Its answer was lost, or it merely wants to sync again.
            return Decision([Answered(ticket, self._rebalance.joined(member))])
        # A leader that joins again has a reason to assign anew, though it need not show in what it says.
        group.update(member, wish)
        forgotten = self._replaced(member, ErrorCode.UNKNOWN_MEMBER_ID)
        member.joining = ticket
        return _with(forgotten, self._rebalance.maybe_begin(now))

    def _return(self, member_id: str, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        """A static member is there again, under another member id. Whoever had that instance id is fenced."""
        group = self._is
        member = group.members[group.static[wish.instance_id or ""]]
        fenced = self._replaced(member, ErrorCode.FENCED_INSTANCE_ID)
        old_id, led = member.member_id, group.leader
        group.update(member, wish)
        # Its client says who it is, so there is no need to be impatient while it waits.
        member.is_new = False
        self._rebalance.forget(old_id)
        if group.state is not State.STABLE or group.chosen_protocol() != group.protocol:
            self._rename(member, member_id)
            member.joining = ticket
            self._rebalance.expect(member_id, member.session_timeout_ms, now)
            again = group.state in (State.COMPLETING, State.STABLE)
            return _with(fenced, self._rebalance.begin(now) if again else self._rebalance.maybe_complete(now))
        # Nothing is different for the others: the log learns its new id, and that is all.
        assignments = {each.member_id: each.assignment for each in group}
        self._rename(member, member_id)
        assignments[member_id] = assignments.pop(old_id)
        record = group.record(group.generation, assignments, now.wall_ms)
        self._rebalance.expect(member_id, member.session_timeout_ms, now)
        joined = self._rebalance.joined(member)
        if wish.can_skip_assignment:
            joined.skip_assignment = group.leader == member_id
        else:
            # It would assign anew if it knew that it leads, and nobody would join it.
            joined.leader, joined.members = led or "", ()
        return _with(fenced, Decision([Answered(ticket, joined)], [record]))

    def _rename(self, member: ClassicMember, member_id: str) -> None:
        group = self._is
        leads = group.leader == member.member_id
        group.remove(member.member_id)
        member.member_id = member_id
        group.add(member)
        if leads:
            group.leader = member_id

    def _replaced(self, member: ClassicMember, code: ErrorCode) -> list[Answered]:
        """An earlier request of this member is not waited for any more by anybody who counts."""
        waiting = [each for each in (member.joining, member.syncing) if each is not None]
        member.joining = member.syncing = None
        return [Answered(ticket, KafkaError(code)) for ticket in waiting]

    def _has_room_for(self, wish: JoinWish) -> bool:
        group, most = self._is, self._around.settings.max_size
        member = group.members.get(wish.member_id)
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING:
            # Those who wait count, so that a group that is too large by now loses its last ones.
            return (member is not None and member.joining is not None) or len(group) - len(group.awaited) < most
        return member is not None or wish.instance_id in group.static or len(group) < most

    # Assigning.

    def sync(self, wish: SyncWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._is
        member = group.member(wish.member_id, wish.instance_id)
        if wish.generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if (wish.protocol_type or group.protocol_type) != group.protocol_type or (
            wish.protocol_name or group.protocol
        ) != group.protocol:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is State.PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalance.synced(member.member_id)
        if group.state is State.STABLE:
            self._rebalance.expect(member.member_id, member.session_timeout_ms, now)
            return Decision([Answered(ticket, self._synced(member.assignment))])
        forgotten = (
            [] if member.syncing is None else [Answered(member.syncing, KafkaError(ErrorCode.UNKNOWN_MEMBER_ID))]
        )
        member.syncing = ticket
        if member.member_id != group.leader:
            return Decision(forgotten)
        return _with(forgotten, self._assign(wish, now))

    def _assign(self, wish: SyncWish, now: Now) -> Verdict:
        """The leader has spoken. Who it left out has nothing to do."""
        answers = []
        for member in self._is:
            if member.syncing is not None:
                assignment = wish.assignments.get(member.member_id, b"")
                answers.append(Answered(member.syncing, self._synced(assignment)))
                # It is answered now in any case, with an error if this cannot be written, and must speak again.
                member.syncing = None
                self._rebalance.expect(member.member_id, member.session_timeout_ms, now)
        return Decision(answers, [self._is.record(self._is.generation, wish.assignments, now.wall_ms)])

    def _synced(self, assignment: bytes) -> Synced:
        return Synced(self._is.protocol_type, self._is.protocol, assignment)

    # Staying and going.

    def beat(self, wish: BeatWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._is
        member = group.member(wish.member_id, wish.instance_id)
        if group.state is State.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if wish.generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        self._rebalance.expect(member.member_id, member.session_timeout_ms, now)
        busy = group.state is State.PREPARING
        return Decision([Answered(ticket, ErrorCode.REBALANCE_IN_PROGRESS if busy else ErrorCode.NONE)])

    def leave(self, wish: LeaveWish, ticket: Ticket, now: Now) -> Verdict:
        answers: list[Answered] = []
        left = [self._leave(each, answers) for each in wish.members]
        answers.append(Answered(ticket, left))
        if all(each.error for each in left):
            return Decision(answers)
        return _with(answers, self._rebalance.after_loss(now))

    def _leave(self, leaving: LeavingMember, answers: list[Answered]) -> LeftMember:
        group = self._is
        member_id, instance_id = leaving
        if member_id == NO_MEMBER and instance_id is not None:
            # An administrator removes whoever has this instance id.
            member_id = group.static.get(instance_id, NO_MEMBER)
        if member_id in group.pending:
            group.remove(member_id)
            self._rebalance.forget(member_id)
            return LeftMember(*leaving, ErrorCode.NONE)
        try:
            answers += self._rebalance.remove(group.member(member_id, instance_id))
        except KafkaError as error:
            return LeftMember(*leaving, error.code)
        return LeftMember(*leaving, ErrorCode.NONE)

    def rang(self, timer: TimerName, now: Now) -> Verdict:
        return self._rebalance.rang(timer, now)

    def begin(self, now: Now) -> None:
        self._rebalance.expect_everybody(now)

    def rebalance(self, now: Now) -> Verdict:
        """It was a group of the newer protocol until now: its members have to join it anew."""
        return self._rebalance.begin(now)

    def release(self, now: Now) -> list[Ticket]:
        """Everybody who waits, for they are answered otherwise, and have to speak again."""
        waiting = self.everybody_waiting()
        for member in self._is:
            member.joining = member.syncing = None
        self._rebalance.expect_everybody(now)
        return waiting

    def everybody_waiting(self) -> list[Ticket]:
        return [each for member in self._is for each in (member.joining, member.syncing) if each is not None]

    # Offsets.

    def check_commit(self, wish: CommitWish, now: Now) -> None:
        group = self._is
        if wish.generation < 0 and group.state is State.EMPTY:
            # Somebody who assigns partitions to itself, or an administrator.
            return
        if wish.generation < 0 and wish.member_id == NO_MEMBER and wish.instance_id is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The group has members, and only they commit offsets.")
        member = group.member(wish.member_id, wish.instance_id)
        if wish.generation != group.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if group.state is State.COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalance.expect(member.member_id, member.session_timeout_ms, now)

    def check_reading(self, wish: OffsetsWish) -> None:
        """Everybody may know."""

    def topics_read(self) -> frozenset[str] | None:
        """As far as can be told: members of other protocols than the consumers' may do anything."""
        group = self._is
        if group.state is State.EMPTY:
            return frozenset()
        if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.state is not State.STABLE:
            return None
        try:
            return frozenset().union(*(read_subscription(member.says(group.protocol)).topics for member in group))
        except Malformed:
            return None

    @property
    def unused_since_ms(self) -> int | None:
        return self._is.since_ms if self._is.state is State.EMPTY else None

    # Looking, and the log.

    @property
    def is_empty(self) -> bool:
        return self._is.state is State.EMPTY and not self._is.pending

    @property
    def member_count(self) -> int:
        return len(self._is.members)

    def snapshot(self) -> ClassicSnapshot:
        """What a group of the newer protocol takes over."""
        group = self._is
        members = [
            ClassicSnapshotMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                member.protocols,
                member.assignment,
            )
            for member in group
        ]
        return ClassicSnapshot(self.group_id, group.generation, group.protocol_type, group.protocol, members)

    def tombstones(self) -> list[GroupRecord]:
        return [GroupRecord(GroupMetadataKey(self.group_id), None)]

    def begin_record(self, now: Now) -> GroupRecord:
        """That there is such a group, before it has members."""
        return ClassicState(self.group_id).record(0, {}, now.wall_ms)

    def replay(self, value: GroupMetadataValue) -> None:
        if value.members or value.generation > self._is.generation or not len(self._is):
            self._is.replay(value)
        # (Else it is what was written when the group began, and members have come since.)

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, self._is.protocol_type or "", self._is.state.value, self.kind)

    def described(self) -> DescribedClassicGroup:
        group = self._is
        is_stable = group.state is State.STABLE
        return DescribedClassicGroup(
            self.group_id,
            group.state.value,
            group.protocol_type or "",
            (group.protocol or "") if is_stable else "",
            [
                DescribedClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.says(group.protocol) if is_stable else b"",
                    member.assignment,
                )
                for member in group
            ],
        )

    def __repr__(self) -> str:
        return repr(self._is)


def _with(answers: list[Answered], verdict: Verdict) -> Verdict:
    verdict.response[:0] = answers
    return verdict


def _dashed(uuid: bytes) -> str:
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
