"""What a group of the newer protocol is: the sum of its records.

Three epochs follow each other. The group's goes up when a member comes, goes or wants something else, or when the
topics change; the target's follows when it has been computed; each member's when it has come there.
"""

from collections.abc import Collection, Iterable

from klamm.coordinator.groups.consumer_member import (
    Member,
    Partitions,
    member_tombstones,
    target_of,
    with_current,
    with_profile,
)
from klamm.coordinator.groups.subscribed import NO_TOPICS_HASH, Resolved, pattern_record
from klamm.coordinator.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupRecord,
)
from klamm.coordinator.wishes import DescribedConsumerGroup, DescribedMember
from klamm.ids import Epoch, Uuid

FIRST_EPOCH: Epoch = 1
"""Where a group begins, and its target, which gives nothing to nobody."""

NO_TARGET_YET = 0
"""The time of a target that was not computed here."""

EMPTY, ASSIGNING, RECONCILING, STABLE = "Empty", "Assigning", "Reconciling", "Stable"


class ConsumerState:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch: Epoch = FIRST_EPOCH
        self.topics_hash = NO_TOPICS_HASH
        self.target_epoch: Epoch = FIRST_EPOCH
        self.target_at_ms = NO_TARGET_YET
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.patterns: dict[str, Resolved] = {}
        self.members_bytes = 0
        """What they take, about."""
        self._instances: dict[str, str] = {}
        self._holders: dict[Uuid, dict[int, str]] = {}

    @property
    def name(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        done = all(member.is_reconciled_to(self.target_epoch) for member in self.members.values())
        return STABLE if done else RECONCILING

    def static_member(self, instance_id: str | None) -> Member | None:
        return self.members.get(self._instances.get(instance_id or "", ""))

    def holder_of(self, topic_id: Uuid, partition: int) -> str | None:
        """The member that has the partition, be it that it is giving it up."""
        return self._holders.get(topic_id, {}).get(partition)

    def is_waiting(self, member: Member) -> bool:
        """Whether there is still nothing more for a member that waits for partitions of others."""
        target = self.targets.get(member.member_id, {})
        return any(
            self.holder_of(topic, partition) not in (None, member.member_id)
            for topic, partitions in target.items()
            for partition in partitions
        )

    def unused_patterns(self, members: Iterable[Member]) -> list[str]:
        """Patterns that none of these members has."""
        used = {member.profile.topic_regex for member in members}
        return sorted(pattern for pattern in self.patterns if pattern not in used)

    def replay(self, record: GroupRecord) -> None:
        """Records of a compacted log may lack what was overwritten later, so nothing is taken for granted."""
        key, value = record
        match key:
            case ConsumerGroupMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupMetadataValue)
                self.epoch = FIRST_EPOCH if value is None else value.epoch
                self.topics_hash = NO_TOPICS_HASH if value is None else value.metadata_hash
            case ConsumerGroupMemberMetadataKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
                self._replay_profile(member_id, value)
            case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
                if value is not None or member_id in self.members:
                    self._put(with_current(self._member(member_id), value))
            case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
                if value is None:
                    self.targets.pop(member_id, None)
                else:
                    self.targets[member_id] = target_of(value)
            case ConsumerGroupTargetAssignmentMetadataKey():
                assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
                self.target_epoch = FIRST_EPOCH if value is None else value.assignment_epoch
                self.target_at_ms = NO_TARGET_YET if value is None else value.assignment_timestamp
            case ConsumerGroupRegularExpressionKey(regular_expression=pattern):
                assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
                if value is None:
                    self.patterns.pop(pattern, None)
                else:
                    self.patterns[pattern] = Resolved(frozenset(value.topics), value.version, value.timestamp)
            case ConsumerGroupPartitionMetadataKey():
                pass
            case _:
                raise AssertionError(f"{type(key).__name__} is no record of a consumer group")

    def tombstones(self) -> list[GroupRecord]:
        """What deletes the group, the group itself last."""
        group = self.group_id
        records = member_tombstones(group, sorted(self.members))
        records.append(GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group=group), None))
        records += [pattern_record(group, pattern, None) for pattern in sorted(self.patterns)]
        records.append(GroupRecord(ConsumerGroupPartitionMetadataKey(group=group), None))
        records.append(GroupRecord(ConsumerGroupMetadataKey(group=group), None))
        return records

    def described(self, assignor: str) -> DescribedConsumerGroup:
        members = [self._described(self.members[member_id]) for member_id in sorted(self.members)]
        return DescribedConsumerGroup(self.group_id, self.name, self.epoch, self.target_epoch, assignor, members)

    def _described(self, member: Member) -> DescribedMember:
        profile = member.profile
        return DescribedMember(
            member.member_id,
            profile.instance_id,
            profile.rack_id,
            member.epoch,
            profile.client_id,
            profile.client_host,
            profile.topic_names,
            profile.topic_regex,
            member.all_it_has,
            self.targets.get(member.member_id, {}),
            member.is_classic,
        )

    def _member(self, member_id: str) -> Member:
        return self.members.get(member_id) or Member(member_id)

    def _replay_profile(self, member_id: str, value: ConsumerGroupMemberMetadataValue | None) -> None:
        if value is not None:
            self._put(with_profile(self._member(member_id), value))
            return
        member = self.members.pop(member_id, None)
        if member is not None:
            self.members_bytes -= member.size_bytes
            self._release(member)
            self._forget_instance(member)

    def _put(self, member: Member) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self.members_bytes -= before.size_bytes
            self._release(before)
            self._forget_instance(before)
        self.members[member.member_id] = member
        self.members_bytes += member.size_bytes
        if member.profile.instance_id is not None:
            self._instances[member.profile.instance_id] = member.member_id
        for topic, partitions in member.all_it_has.items():
            self._holders.setdefault(topic, {}).update(dict.fromkeys(partitions, member.member_id))

    def _release(self, member: Member) -> None:
        for topic, partitions in member.all_it_has.items():
            held = self._holders.get(topic, {})
            for partition in partitions:
                if held.get(partition) == member.member_id:
                    del held[partition]
            if not held:
                self._holders.pop(topic, None)

    def _forget_instance(self, member: Member) -> None:
        instance_id = member.profile.instance_id
        if instance_id is not None and self._instances.get(instance_id) == member.member_id:
            del self._instances[instance_id]

    def __repr__(self) -> str:
        epochs = f"epoch={self.epoch} target={self.target_epoch}"
        return f"<{self.group_id} {self.name} {epochs} members={sorted(self.members.values(), key=_id)}>"


def epoch_record(group_id: str, epoch: Epoch, topics_hash: int) -> GroupRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=topics_hash)
    return GroupRecord(ConsumerGroupMetadataKey(group=group_id), value)


def classic_protocols(members: Collection[Member]) -> set[str]:
    """Protocols that all members of the classic protocol among these support."""
    named = [{name for name, _ in member.profile.classic.protocols} for member in members if member.profile.classic]
    return set.intersection(*named) if named else set()


def _id(member: Member) -> str:
    return member.member_id
