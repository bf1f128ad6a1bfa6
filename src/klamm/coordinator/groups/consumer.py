"""A group of the newer protocol (KIP-848): the coordinator assigns, and members are led there one heartbeat at a time.

A heartbeat says what changed about the member and what it owns; the reply says at which epoch it is and, if that
changed, what it should have. Nobody waits for anybody: there is no barrier, and every request is answered at once.

State changes when records are replayed, and nowhere else. Timers are soft: they are set when something is decided,
whether it will be committed or not, taken off when the record is replayed that makes them pointless, and looked at
with doubt when they ring.
"""

from collections.abc import Collection
from dataclasses import replace

from klamm.coordinator.groups.advance import Advance
from klamm.coordinator.groups.classic_members import ClassicMembers
from klamm.coordinator.groups.consumer_member import (
    Member,
    Partitions,
    Profile,
    current_record,
    member_tombstones,
    plain,
)
from klamm.coordinator.groups.consumer_state import EMPTY, ConsumerState, epoch_record
from klamm.coordinator.groups.conversion import ClassicSnapshot, check_upgrade, downgrade, may_downgrade, upgrade
from klamm.coordinator.groups.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, Surroundings, TimerName
from klamm.coordinator.groups.member_checks import (
    check_commit_epoch,
    check_epoch,
    check_heartbeat,
    check_reading_epoch,
    member_of,
)
from klamm.coordinator.groups.member_timers import AGAIN_MS, REVOCATION, TIMERS, MemberTimers
from klamm.coordinator.groups.subscribed import existing, names_of, pattern_record, topics_hash
from klamm.coordinator.groups.target import preferred_assignor
from klamm.coordinator.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    GroupRecord,
)
from klamm.coordinator.wishes import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    Answered,
    BeatWish,
    CommitWish,
    DescribedConsumerGroup,
    HeartbeatReply,
    HeartbeatWish,
    JoinWish,
    LeaveWish,
    ListedGroup,
    OffsetsWish,
    SyncWish,
    Ticket,
    Verdict,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_OFFSET, Now, Offset, drawn_uuid, uuid_text
from klamm.machine import Decision


class ConsumerGroup:
    kind = CONSUMER

    def __init__(self, group_id: str, surroundings: Surroundings) -> None:
        self.group_id = group_id
        self.state = ConsumerState(group_id)
        self.surroundings = surroundings
        self.topics_offset: Offset = NO_OFFSET
        self.timers = MemberTimers(group_id, surroundings)
        self._topics_are_known = False
        self._classic = ClassicMembers(self)

    @classmethod
    def upgrade(
        cls, classic: ClassicSnapshot, surroundings: Surroundings, wish: HeartbeatWish, ticket: Ticket, now: Now
    ) -> Verdict:
        """A member of the newer protocol joins what is a classic group until the records are replayed."""
        try:
            check_upgrade(classic, surroundings.settings)
            records = upgrade(classic, surroundings.image)
        except KafkaError as error:
            return Decision([Answered(ticket, error)])
        group = cls(classic.group_id, surroundings)
        for record in records[1:]:
            group.replay(record)
        verdict = group.heartbeat(wish, ticket, now)
        if verdict.records:
            group.begin(now)
            verdict.records[:0] = records
        return verdict

    # What members ask.

    def heartbeat(self, wish: HeartbeatWish, ticket: Ticket, now: Now) -> Verdict:
        try:
            check_heartbeat(wish, self.surroundings.settings)
            if wish.member_epoch in (LEAVES, LEAVES_FOR_A_WHILE):
                return self._left(wish, ticket, now)
            return self._beaten(wish, ticket, now)
        except KafkaError as error:
            return Decision([Answered(ticket, error)])

    def join(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        return self._classic.join(wish, ticket, now)

    def sync(self, wish: SyncWish, ticket: Ticket, now: Now) -> Verdict:
        return self._classic.sync(wish, ticket, now)

    def beat(self, wish: BeatWish, ticket: Ticket, now: Now) -> Verdict:
        return self._classic.beat(wish, ticket, now)

    def leave(self, wish: LeaveWish, ticket: Ticket, now: Now) -> Verdict:
        return self._classic.leave(wish, ticket, now)

    def check_commit(self, wish: CommitWish, now: Now) -> None:
        check_commit_epoch(self.state, self.surroundings.image, wish)

    def check_reading(self, wish: OffsetsWish) -> None:
        check_reading_epoch(self.state, wish)

    # What happens.

    def replay(self, record: GroupRecord) -> None:
        self.state.replay(record)
        match record.key:
            case ConsumerGroupMemberMetadataKey(member_id=member_id) if record.value is None:
                self.timers.forget(member_id)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                member = self.state.members.get(member_id)
                if member is None or not member.must_revoke:
                    self.timers.take_off(REVOCATION, member_id)

    def begin(self, now: Now) -> None:
        self.topics_changed()
        for member in self.state.members.values():
            self.timers.extend_session(member, now)
            if member.must_revoke:
                self.timers.expect_revocation(member, now)

    def topics_changed(self) -> None:
        """Topics, or the racks they are in, are others: the next heartbeat looks at them."""
        self._topics_are_known = False
        self.topics_offset = self.surroundings.image.offset

    def rang(self, timer: TimerName, now: Now) -> Verdict:
        member = self.state.members.get(timer.member_id)
        if member is None or timer.kind not in TIMERS:
            return Decision([])
        if timer.kind == REVOCATION and not member.must_revoke:
            return Decision([])
        self.timers.set(timer.kind, member, AGAIN_MS, now)
        return Decision([], self.removal([member], now))

    def everybody_waiting(self) -> list[Ticket]:
        """Nobody waits."""
        return []

    # What it is.

    @property
    def is_empty(self) -> bool:
        return self.state.name == EMPTY

    @property
    def member_count(self) -> int:
        return len(self.state.members)

    @property
    def unused_since_ms(self) -> int | None:
        """In groups of this kind each offset grows old by itself."""
        return None

    def topics_read(self) -> frozenset[str]:
        return frozenset().union(*(names_of(member, self.state.patterns) for member in self.state.members.values()))

    def tombstones(self) -> list[GroupRecord]:
        return self.state.tombstones()

    def listed(self) -> ListedGroup:
        return ListedGroup(self.group_id, CONSUMER_PROTOCOL_TYPE, self.state.name, CONSUMER)

    def described(self) -> DescribedConsumerGroup:
        assignors = self.surroundings.settings.assignors
        return self.state.described(preferred_assignor(self.state.members.values(), assignors))

    # Steps that both protocols take.

    def advance(self, now: Now) -> Advance:
        return Advance(self.state, self.surroundings, self.topics_offset, now)

    def advanced(self, step: Advance, before: Member, after: Member, owned: Partitions | None, now: Now) -> Member:
        """Run the step, and set the timers that belong to it."""
        member = step.run(before, after, owned, look_at_topics=not self._topics_are_known)
        self._topics_are_known |= step.topics_are_known
        self.timers.extend_session(member, now)
        if member.must_revoke and member != after:
            self.timers.expect_revocation(member, now)
        return member

    def removal(self, members: Collection[Member], now: Now) -> list[GroupRecord]:
        """Records after which these members are not there, and the group, if there is one, is at its next epoch."""
        state, image = self.state, self.surroundings.image
        gone = {member.member_id for member in members}
        rest = [member for member_id, member in sorted(state.members.items()) if member_id not in gone]
        if may_downgrade(members, rest, self.surroundings.settings):
            return downgrade(state, image, rest, now)
        records = member_tombstones(self.group_id, sorted(gone))
        patterns = dict(state.patterns)
        for unused in state.unused_patterns(rest):
            del patterns[unused]
            records.append(pattern_record(self.group_id, unused, None))
        found = topics_hash(existing(rest, patterns, image), image)
        records.append(epoch_record(self.group_id, state.epoch + 1, found))
        return records

    @property
    def size_bytes(self) -> int:
        return self.state.members_bytes

    def bytes_of(self, member_id: str, instance_id: str | None) -> int:
        member = self.state.static_member(instance_id) or self.state.members.get(member_id)
        return 0 if member is None else member.size_bytes

    def check_size(self, member_id: str) -> None:
        most = self.surroundings.settings.consumer_max_size
        if len(self.state.members) >= most and member_id not in self.state.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group has reached its maximum size of {most} members."
            )

    # Heartbeats.

    def _beaten(self, wish: HeartbeatWish, ticket: Ticket, now: Now) -> Verdict:
        self.check_size(wish.member_id)
        step = self.advance(now)
        before = self._speaker(wish, step)
        profile = _updated(before.profile, wish)
        after = before if profile == before.profile else replace(before, profile=profile)
        member = self.advanced(step, before, after, wish.owned, now)
        reply = HeartbeatReply(member.member_id, member.epoch, self.surroundings.settings.consumer_heartbeat_ms)
        if _is_full(wish) or plain(member.assigned) != plain(before.assigned):
            reply.assignment = plain(member.assigned)
        return Decision([Answered(ticket, reply)], step.records)

    def _speaker(self, wish: HeartbeatWish, step: Advance) -> Member:
        """The member whose heartbeat this is, be it that it is only now coming."""
        if wish.member_epoch != JOINS:
            member = member_of(self.state, wish.member_id, wish.instance_id)
            check_epoch(member, wish.member_epoch, wish.owned)
            return member
        member_id = wish.member_id or uuid_text(drawn_uuid(self.surroundings.random))
        if wish.instance_id is None:
            return self.state.members.get(member_id) or Member(member_id)
        static = self.state.static_member(wish.instance_id)
        if static is None:
            return self.state.members.get(member_id) or Member(member_id)
        if static.member_id == member_id and not static.is_away:
            # It did not hear that it has joined: it is no second one.
            return static
        if not static.is_classic and not static.is_away:
            reason = f"The instance id {wish.instance_id} is that of member {static.member_id}, which has not left."
            raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, reason)
        return step.take_over(static, member_id)

    def _left(self, wish: HeartbeatWish, ticket: Ticket, now: Now) -> Verdict:
        member = member_of(self.state, wish.member_id, wish.instance_id)
        answered = [Answered(ticket, HeartbeatReply(wish.member_id, wish.member_epoch, 0))]
        if wish.member_epoch == LEAVES_FOR_A_WHILE:
            return Decision(answered, [current_record(self.group_id, member.gone_for_a_while())])
        return Decision(answered, self.removal([member], now))

    def __repr__(self) -> str:
        return repr(self.state)


def _updated(profile: Profile, wish: HeartbeatWish) -> Profile:
    """What the heartbeat does not mention is as it was. Whoever sends it speaks the newer protocol from now on."""
    names, regex = wish.subscribed_topic_names, wish.subscribed_topic_regex
    return Profile(
        profile.instance_id if wish.instance_id is None else wish.instance_id,
        profile.rack_id if wish.rack_id is None else wish.rack_id,
        wish.client_id,
        wish.client_host,
        profile.topic_names if names is None else tuple(sorted(set(names))),
        profile.topic_regex if regex is None else regex or None,
        profile.rebalance_timeout_ms if wish.rebalance_timeout_ms == -1 else wish.rebalance_timeout_ms,
        profile.server_assignor if wish.server_assignor is None else wish.server_assignor,
    )


def _is_full(wish: HeartbeatWish) -> bool:
    """A member that says everything may have missed a reply, and is told everything."""
    if wish.member_epoch == JOINS:
        return True
    subscribes = wish.subscribed_topic_names is not None or wish.subscribed_topic_regex is not None
    return wish.rebalance_timeout_ms != -1 and subscribes and wish.owned is not None
