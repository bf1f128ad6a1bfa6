"""Members of the classic protocol in a group of the newer one: while clients are being upgraded, both are in the group.

To such a member the group looks like a classic one whose rebalances are over at once. It joins, and is led a step like
with a heartbeat; its generation is its epoch. It syncs, and gets what it has. When there is more, or less, for it, its
heartbeat says that the group is rebalancing, and it joins again, saying what it owns. It is never the leader.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from klamm.coordinator.groups.advance import Advance
from klamm.coordinator.groups.consumer_member import ClassicSide, Member, MemberState, Profile
from klamm.coordinator.groups.consumer_state import classic_protocols
from klamm.coordinator.groups.conversion import chosen_protocol, downgrade, identified, may_downgrade, named
from klamm.coordinator.groups.group import CONSUMER_PROTOCOL_TYPE
from klamm.coordinator.groups.member_checks import member_of
from klamm.coordinator.groups.member_timers import REJOIN, SYNC
from klamm.coordinator.groups.subscription import Subscription, assignment_bytes, read_subscription
from klamm.coordinator.groups.target import is_time_for_a_target
from klamm.coordinator.wishes import (
    NO_GENERATION,
    NO_MEMBER,
    Answered,
    BeatWish,
    Joined,
    JoinWish,
    LeaveWish,
    LeavingMember,
    LeftMember,
    Synced,
    SyncWish,
    Ticket,
    Verdict,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now, drawn_uuid, uuid_text
from klamm.machine import Decision

if TYPE_CHECKING:
    from klamm.coordinator.groups.consumer import ConsumerGroup

NO_LEADER = ""


class ClassicMembers:
    """What a consumer group answers to requests of the classic protocol."""

    def __init__(self, group: "ConsumerGroup") -> None:
        self._group = group

    def join(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        try:
            return self._joined(wish, ticket, now)
        except KafkaError as error:
            return Decision([Answered(ticket, error)])

    def sync(self, wish: SyncWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._group
        try:
            member = self._speaker(wish.member_id, wish.instance_id, wish.generation)
            _check_protocol(member, wish)
            if group.state.target_epoch > member.epoch and member.state != MemberState.UNREVOKED:
                group.timers.expect_rejoin(member, now)
                raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "There is a new rebalance: the member has to rejoin.")
        except KafkaError as error:
            return Decision([Answered(ticket, error)])
        group.timers.take_off(SYNC, member.member_id)
        group.timers.extend_session(member, now)
        assignment = assignment_bytes(named(member.assigned, group.surroundings.image), version=_said(member).version)
        return Decision([Answered(ticket, Synced(wish.protocol_type, wish.protocol_name, assignment))])

    def beat(self, wish: BeatWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._group
        try:
            member = self._speaker(wish.member_id, wish.instance_id, wish.generation)
        except KafkaError as error:
            return Decision([Answered(ticket, error)])
        group.timers.extend_session(member, now)
        if not self._should_rejoin(member, now):
            return Decision([Answered(ticket, ErrorCode.NONE)])
        group.timers.expect_rejoin(member, now)
        return Decision([Answered(ticket, ErrorCode.REBALANCE_IN_PROGRESS)])

    def leave(self, wish: LeaveWish, ticket: Ticket, now: Now) -> Verdict:
        """Members of either protocol: an administrator removes them like this, too."""
        left: list[LeftMember] = []
        leaving: dict[str, Member] = {}
        for who in wish.members:
            try:
                member = self._leaving(who)
                leaving[member.member_id] = member
                left.append(LeftMember(who.member_id, who.instance_id, ErrorCode.NONE))
            except KafkaError as error:
                left.append(LeftMember(who.member_id, who.instance_id, error.code))
        records = self._group.removal(list(leaving.values()), now) if leaving else []
        return Decision([Answered(ticket, left)], records)

    # Joining.

    def _joined(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        group, surroundings = self._group, self._group.surroundings
        if not surroundings.settings.migrations:
            reason = f"Cannot join the consumer group {wish.group_id} with the classic protocol: migration is disabled."
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
        member_id = wish.member_id or uuid_text(drawn_uuid(surroundings.random))
        group.check_size(member_id)
        self._check_supported(wish)
        if wish.must_know_its_id and wish.member_id == NO_MEMBER and wish.instance_id is None:
            told = Joined(member_id, NO_GENERATION, None, None, NO_LEADER, error=ErrorCode.MEMBER_ID_REQUIRED)
            return Decision([Answered(ticket, told)])
        subscription = _read(wish.protocols[0][1])
        static = group.state.static_member(wish.instance_id)
        step = group.advance(now)
        before = self._joining(wish, member_id, static, step)
        after = replace(before, profile=_updated(before.profile, wish, subscription))
        others = [member for member in group.state.members.values() if member is not static]
        if static is not None and may_downgrade([static], [*others, after], surroundings.settings):
            records = downgrade(group.state, surroundings.image, [*others, after], now)
            protocol = chosen_protocol([*others, after])
            joined = Joined(member_id, group.state.epoch, CONSUMER_PROTOCOL_TYPE, protocol, NO_LEADER)
            return Decision([Answered(ticket, joined)], records)
        owned = identified(subscription.owned, surroundings.image)
        member = group.advanced(step, before, after, owned, now)
        group.timers.take_off(REJOIN, member_id)
        group.timers.expect_sync(member, now)
        joined = Joined(member_id, member.epoch, CONSUMER_PROTOCOL_TYPE, wish.protocols[0][0], NO_LEADER)
        return Decision([Answered(ticket, joined)], step.records)

    def _check_supported(self, wish: JoinWish) -> None:
        members = list(self._group.state.members.values())
        offered = {name for name, _ in wish.protocols}
        common = classic_protocols(members) if any(member.is_classic for member in members) else offered
        if wish.protocol_type != CONSUMER_PROTOCOL_TYPE or not offered & common:
            reason = f"Member {wish.member_id}'s protocols are not supported."
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)

    def _joining(self, wish: JoinWish, member_id: str, static: Member | None, step: Advance) -> Member:
        """A static member that does not know its id has been started anew, and takes over from itself."""
        if wish.instance_id is not None and wish.member_id != NO_MEMBER:
            return member_of(self._group.state, wish.member_id, wish.instance_id)
        if static is not None:
            return step.take_over(static, member_id)
        return self._group.state.members.get(member_id) or Member(member_id)

    # The others.

    def _speaker(self, member_id: str, instance_id: str | None, generation: int) -> Member:
        member = member_of(self._group.state, member_id, instance_id)
        if not member.is_classic:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
        if generation != member.epoch:
            reason = f"The generation {generation} is not the epoch {member.epoch} of member {member_id}."
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, reason)
        return member

    def _should_rejoin(self, member: Member, now: Now) -> bool:
        """There is a target to go to, or something to give up, or something to be had. Or there is a target to be made:
        by the next heartbeat of a member of the newer protocol, but there may be none."""
        state, settings = self._group.state, self._group.surroundings.settings
        if member.epoch < state.target_epoch or member.state == MemberState.UNREVOKED:
            return True
        if member.state == MemberState.UNRELEASED and not state.is_waiting(member):
            return True
        if state.epoch == state.target_epoch or not all(each.is_classic for each in state.members.values()):
            return False
        return is_time_for_a_target(state.target_at_ms, settings.assignment_interval_ms, now.wall_ms)

    def _leaving(self, who: LeavingMember) -> Member:
        if who.instance_id is None or who.member_id != NO_MEMBER:
            return member_of(self._group.state, who.member_id, who.instance_id)
        member = self._group.state.static_member(who.instance_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {who.instance_id} is unknown.")
        return member


def _updated(profile: Profile, wish: JoinWish, subscription: Subscription) -> Profile:
    timeout_ms = wish.rebalance_timeout_ms
    return Profile(
        profile.instance_id if wish.instance_id is None else wish.instance_id,
        subscription.rack or profile.rack_id,
        wish.client_id,
        wish.client_host,
        tuple(sorted(subscription.topics)),
        None,
        profile.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        profile.server_assignor,
        ClassicSide(wish.session_timeout_ms, tuple((name, bytes(metadata)) for name, metadata in wish.protocols)),
    )


def _check_protocol(member: Member, wish: SyncWish) -> None:
    classic = member.profile.classic
    assert classic is not None
    if wish.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        reason = f"The protocol type {wish.protocol_type} is not that of the group, {CONSUMER_PROTOCOL_TYPE}."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)
    if wish.protocol_name not in (None, classic.protocols[0][0]):
        reason = f"The protocol {wish.protocol_name} is not the one the member was told when it joined."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)


def _said(member: Member) -> Subscription:
    assert member.profile.classic is not None
    return _read(member.profile.classic.protocols[0][1])


def _read(metadata: bytes) -> Subscription:
    try:
        return read_subscription(metadata)
    except ValueError:
        reason = "What the member says about its subscription is malformed."
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason) from None
