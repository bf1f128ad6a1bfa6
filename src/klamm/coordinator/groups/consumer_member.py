"""One member of a group of the newer protocol, as a value, and the records it is kept in.

Two records make a member: what it says about itself, and where it stands. It stands at an epoch, the last target
assignment it has reached or is on its way from, and has partitions, each from some epoch on. It is

    stable      has what the target of its epoch gives it;
    unrevoked   has been told to give partitions up, and stays at its epoch until it no longer reports them;
    unreleased  has reached the epoch, and waits for partitions that others have not given up yet.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from klamm.coordinator.memory import PARTITION_BYTES, bytes_of_classic, bytes_of_consumer
from klamm.coordinator.records import (
    ClassicMemberMetadataValue,
    ClassicProtocolValue,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    EpochPartitionsValue,
    GroupRecord,
    TopicPartitionsValue,
)
from klamm.coordinator.wishes import LEAVES, LEAVES_FOR_A_WHILE
from klamm.ids import Epoch, Uuid

Partitions: TypeAlias = Mapping[Uuid, frozenset[int]]
Held: TypeAlias = Mapping[Uuid, Mapping[int, Epoch]]
"""Partitions by topic, each with the epoch from which on the member has it. No topic without partitions."""


class MemberState(IntEnum):
    """By Kafka's numbers."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127
    """Written by a version that knows more states than we do."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a member says about itself. Topic names are sorted; an empty pattern is None."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: tuple[str, ...] = ()
    topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: "ClassicSide | None" = None

    @property
    def size_bytes(self) -> int:
        size = bytes_of_consumer(self.client_id, self.instance_id, self.topic_names, self.topic_regex)
        if self.classic is not None:
            size += bytes_of_classic("", None, self.classic.protocols)
        return size


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """What there is to know about a member that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    member_id: str
    profile: Profile = Profile()
    epoch: Epoch = 0
    previous_epoch: Epoch = -1
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=dict)
    revoking: Held = field(default_factory=dict)
    """What it was told to give up, and still has as far as we know."""

    @property
    def is_classic(self) -> bool:
        return self.profile.classic is not None

    @property
    def is_away(self) -> bool:
        """A static member that said it would come back."""
        return self.epoch == LEAVES_FOR_A_WHILE

    @property
    def must_revoke(self) -> bool:
        """Somebody may be waiting for it. Who is away has nothing to give up."""
        return self.state == MemberState.UNREVOKED and not self.is_away

    @property
    def all_it_has(self) -> Partitions:
        """With what it is giving up."""
        found = plain(self.assigned)
        for topic, partitions in self.revoking.items():
            found[topic] = found.get(topic, frozenset()).union(partitions)
        return found

    @property
    def size_bytes(self) -> int:
        held = sum(map(len, self.assigned.values())) + sum(map(len, self.revoking.values()))
        return self.profile.size_bytes + PARTITION_BYTES * held

    def is_reconciled_to(self, epoch: Epoch) -> bool:
        return self.state == MemberState.STABLE and self.epoch == epoch

    def at_epoch(self, epoch: Epoch, state: MemberState, assigned: Held, revoking: Held) -> "Member":
        """Kafka remembers the epoch before with every step, even one that stays: then there is no way back."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)

    def gone_for_a_while(self) -> "Member":
        """It keeps its partitions for its successor, which may commit for all of them."""
        kept = {topic: dict.fromkeys(partitions, 0) for topic, partitions in self.assigned.items()}
        return replace(self, epoch=LEAVES_FOR_A_WHILE, assigned=kept, revoking={})

    def succeeded_by(self, member_id: str) -> "Member":
        """Another member with the same instance id has what this one had."""
        return replace(self, member_id=member_id, epoch=0, previous_epoch=0)

    def epoch_of(self, topic_id: Uuid, partition: int) -> Epoch | None:
        """From when on it has the partition, if it has it."""
        for held in (self.assigned, self.revoking):
            epoch = held.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None

    def __repr__(self) -> str:
        has = sum(map(len, self.assigned.values()))
        revoking = sum(map(len, self.revoking.values()))
        return f"<{self.member_id} {self.state.name} epoch={self.epoch} has={has} revoking={revoking}>"


def plain(held: Held) -> dict[Uuid, frozenset[int]]:
    return {topic: frozenset(partitions) for topic, partitions in held.items()}


# Records.


def profile_record(group_id: str, member: Member) -> GroupRecord:
    profile = member.profile
    value = ConsumerGroupMemberMetadataValue(
        instance_id=profile.instance_id,
        rack_id=profile.rack_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        subscribed_topic_names=list(profile.topic_names),
        subscribed_topic_regex=profile.topic_regex,
        rebalance_timeout_ms=profile.rebalance_timeout_ms,
        server_assignor=profile.server_assignor,
        classic_member_metadata=_classic_value(profile.classic),
    )
    return GroupRecord(ConsumerGroupMemberMetadataKey(group=group_id, member_id=member.member_id), value)


def target_record(group_id: str, member_id: str, target: Partitions) -> GroupRecord:
    topics = [TopicPartitionsValue(topic_id=topic, partitions=sorted(target[topic])) for topic in sorted(target)]
    key = ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id)
    return GroupRecord(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def current_record(group_id: str, member: Member) -> GroupRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_held_values(member.assigned),
        partitions_pending_revocation=_held_values(member.revoking),
    )
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_ids: Iterable[str]) -> list[GroupRecord]:
    """In this order, member by member: where it stands, what it is meant to have, what it is."""
    return [
        GroupRecord(key(group=group_id, member_id=member_id), None)
        for member_id in member_ids
        for key in (
            ConsumerGroupCurrentMemberAssignmentKey,
            ConsumerGroupTargetAssignmentMemberKey,
            ConsumerGroupMemberMetadataKey,
        )
    ]


def with_profile(member: Member, value: ConsumerGroupMemberMetadataValue) -> Member:
    classic = value.classic_member_metadata
    profile = Profile(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        tuple(sorted(value.subscribed_topic_names)),
        value.subscribed_topic_regex or None,
        value.rebalance_timeout_ms,
        value.server_assignor,
        None if classic is None else _classic_side(classic),
    )
    return replace(member, profile=profile)


def with_current(member: Member, value: ConsumerGroupCurrentMemberAssignmentValue | None) -> Member:
    """Without a value the member has nothing any more, and is about to be gone."""
    if value is None:
        return replace(member, epoch=LEAVES, previous_epoch=LEAVES, assigned={}, revoking={})
    known = value.state in (MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED)
    return replace(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if known else MemberState.UNKNOWN,
        assigned=_held(value.assigned_partitions, value.member_epoch),
        revoking=_held(value.partitions_pending_revocation, value.member_epoch),
    )


def target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions if topic.partitions}


def _held_values(held: Held) -> list[EpochPartitionsValue]:
    values = []
    for topic_id in sorted(held):
        partitions = sorted(held[topic_id])
        epochs = [held[topic_id][partition] for partition in partitions]
        values.append(EpochPartitionsValue(topic_id=topic_id, partitions=partitions, assignment_epochs=epochs))
    return values


def _held(values: list[EpochPartitionsValue], member_epoch: Epoch) -> Held:
    held: dict[Uuid, dict[int, Epoch]] = {}
    for value in values:
        epochs = value.assignment_epochs
        if epochs is None or len(epochs) != len(value.partitions):
            # Before 4.2 the epochs were not written: then it has them since its own.
            epochs = [member_epoch] * len(value.partitions)
        if value.partitions:
            held[value.topic_id] = dict(zip(value.partitions, epochs, strict=True))
    return held


def _classic_value(classic: ClassicSide | None) -> ClassicMemberMetadataValue | None:
    if classic is None:
        return None
    protocols = [ClassicProtocolValue(name=name, metadata=metadata) for name, metadata in classic.protocols]
    return ClassicMemberMetadataValue(session_timeout_ms=classic.session_timeout_ms, supported_protocols=protocols)


def _classic_side(value: ClassicMemberMetadataValue) -> ClassicSide:
    protocols = tuple((protocol.name, bytes(protocol.metadata)) for protocol in value.supported_protocols)
    return ClassicSide(value.session_timeout_ms, protocols)
