"""A group changes its kind while its members stay: from classic to consumer, and back.

The first member of the newer protocol that joins a classic group of consumers takes the group along. What the members
had they keep, and the group's epoch goes on from the generation; the joining member then brings about the next one.
When the last member of the newer protocol goes, what is left is a classic group again, at the generation that was the
group's epoch. Either way the old kind's tombstones and the new kind's records are one batch: after a crash it is one
group or the other.

The container notices the other kind when it replays; it calls `begin` then, and rebalances what became classic.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from klamm.codec.primitives import Malformed
from klamm.coordinator.groups.consumer_member import (
    ClassicSide,
    Member,
    Partitions,
    Profile,
    current_record,
    profile_record,
    target_record,
)
from klamm.coordinator.groups.consumer_state import NO_TARGET_YET, ConsumerState, classic_protocols, epoch_record
from klamm.coordinator.groups.group import CONSUMER_PROTOCOL_TYPE
from klamm.coordinator.groups.subscribed import NO_TOPICS_HASH, existing, topics_hash
from klamm.coordinator.groups.subscription import (
    GivenPartitions,
    assignment_bytes,
    read_assignment,
    read_subscription,
)
from klamm.coordinator.groups.target import target_epoch_record
from klamm.coordinator.records import ClassicMemberValue, GroupMetadataKey, GroupMetadataValue, GroupRecord
from klamm.coordinator.settings import DOWNGRADE, UPGRADE, GroupSettings
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Epoch, Now, Uuid
from klamm.metadata.image import Image


@dataclass(frozen=True, slots=True)
class ClassicSnapshotMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """In the member's order, each with the member's subscription."""
    assignment: bytes
    """Empty if it has none (yet)."""


@dataclass(frozen=True, slots=True)
class ClassicSnapshot:
    """A classic group, as far as it matters to what it becomes."""

    group_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    """None before the first rebalance is over: then the members' first one counts."""
    members: Sequence[ClassicSnapshotMember]


def check_upgrade(classic: ClassicSnapshot, settings: GroupSettings) -> None:
    """Raise what a member of the newer protocol has to hear that cannot join this group."""
    reason = None
    if not classic.members:
        return
    if UPGRADE not in settings.migrations:
        reason = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        reason = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > settings.consumer_max_size:
        reason = "the group size exceeds the consumer group maximum size"
    if reason is not None:
        message = f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


def upgrade(classic: ClassicSnapshot, image: Image) -> list[GroupRecord]:
    """The group is no classic one any more, and a consumer group with the same members. Raises KafkaError."""
    group, epoch = classic.group_id, classic.generation
    records = [GroupRecord(GroupMetadataKey(group=group), None)]
    if not classic.members:
        return records
    members = [_upgraded(classic, member, image) for member in classic.members]
    members.sort(key=lambda member: member.member_id)
    had = _each_with_its_own(classic, members)
    topics = existing(members, {}, image)
    # A group that was in the middle of a rebalance has partitions that nobody was given: it must not stay like that,
    # even if the member that comes is a successor who changes nothing. It comes to its next epoch then.
    is_whole = all((topic.topic_id, index) in had for topic in topics for index in range(len(topic.partitions)))
    records += [profile_record(group, member) for member in members]
    records.append(epoch_record(group, epoch, topics_hash(topics, image) if is_whole else NO_TOPICS_HASH))
    records += [target_record(group, member.member_id, _plain(member)) for member in members]
    # The target is not ours, so it is no reason to wait with the next one.
    records.append(target_epoch_record(group, epoch, NO_TARGET_YET))
    records += [current_record(group, member) for member in members]
    return records


def may_downgrade(leaving: Collection[Member], staying: Collection[Member], settings: GroupSettings) -> bool:
    return (
        bool(staying)
        and all(member.is_classic for member in staying)
        and not all(member.is_classic for member in leaving)
        and DOWNGRADE in settings.migrations
        and len(staying) <= settings.max_size
    )


def downgrade(state: ConsumerState, image: Image, staying: Sequence[Member], now: Now) -> list[GroupRecord]:
    """The group is no consumer group any more, and a classic one with these members, who keep all they have.

    What they are giving up is theirs until they say so. If it were not written down, the next member of the newer
    protocol would be given it at once, while its owner still reads.
    """
    protocol = chosen_protocol(staying)
    value = GroupMetadataValue(
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        generation=state.epoch,
        protocol=protocol,
        leader=min(member.member_id for member in staying),
        current_state_timestamp=now.wall_ms,
        members=[
            _downgraded(member, protocol, image) for member in sorted(staying, key=lambda member: member.member_id)
        ],
    )
    return [*state.tombstones(), GroupRecord(GroupMetadataKey(group=state.group_id), value)]


def chosen_protocol(members: Collection[Member]) -> str:
    """Each votes for the first it has of those that all have, as in a classic group."""
    sides = [member.profile.classic for member in members if member.profile.classic is not None]
    common = classic_protocols(members)
    votes = Counter(next(name for name, _ in side.protocols if name in common) for side in sides)
    return min(votes, key=lambda name: (-votes[name], name))


def named(partitions: Mapping[Uuid, Collection[int]], image: Image) -> dict[str, frozenset[int]]:
    """By the topics' names, without those that are gone."""
    names = ((image.topic_names.get(topic_id), found) for topic_id, found in partitions.items())
    return {name: frozenset(found) for name, found in names if name is not None}


def identified(partitions: Mapping[str, Collection[int]], image: Image) -> dict[Uuid, frozenset[int]]:
    """By the topics' ids, without those that are gone."""
    topics = ((image.topics.get(name), found) for name, found in partitions.items())
    return {topic.topic_id: frozenset(found) for topic, found in topics if topic is not None and found}


def _upgraded(classic: ClassicSnapshot, member: ClassicSnapshotMember, image: Image) -> Member:
    metadata = dict(member.protocols).get(classic.protocol_name or "", member.protocols[0][1])
    try:
        subscription = read_subscription(metadata)
        given = read_assignment(member.assignment) if member.assignment else GivenPartitions()
    except ValueError:
        message = f"Cannot upgrade the classic group {classic.group_id}: what its members say is malformed."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message) from None
    if given.user_data:
        # Its assignor has something to tell the members that ours could not.
        message = f"Cannot upgrade the classic group {classic.group_id}: it uses an assignor of its own."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
    epoch: Epoch = classic.generation
    profile = Profile(
        member.instance_id,
        subscription.rack,
        member.client_id,
        member.client_host,
        tuple(sorted(subscription.topics)),
        None,
        member.rebalance_timeout_ms,
        None,
        ClassicSide(member.session_timeout_ms, tuple(member.protocols)),
    )
    held = {
        topic: dict.fromkeys(sorted(partitions), epoch)
        for topic, partitions in identified(given.partitions, image).items()
    }
    return Member(member.member_id, profile, epoch, epoch, assigned=held)


def _each_with_its_own(classic: ClassicSnapshot, members: Iterable[Member]) -> set[tuple[Uuid, int]]:
    """What they have together. Members of a classic group may agree that several read the same; here one does."""
    had: set[tuple[Uuid, int]] = set()
    for member in members:
        for topic, partitions in member.assigned.items():
            for partition in partitions:
                if (topic, partition) in had:
                    message = f"Cannot upgrade the classic group {classic.group_id}: some partitions have two readers."
                    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
                had.add((topic, partition))
    return had


def _version_of(subscription: bytes) -> int:
    """The version a member speaks. What it says for a protocol that was not in use may be anything."""
    try:
        return read_subscription(subscription).version
    except Malformed:
        return 0


def _downgraded(member: Member, protocol: str, image: Image) -> ClassicMemberValue:
    profile, classic = member.profile, member.profile.classic
    assert classic is not None
    subscription = dict(classic.protocols)[protocol]
    return ClassicMemberValue(
        member_id=member.member_id,
        group_instance_id=profile.instance_id,
        client_id=profile.client_id,
        client_host=profile.client_host,
        rebalance_timeout=profile.rebalance_timeout_ms,
        session_timeout=classic.session_timeout_ms,
        subscription=subscription,
        assignment=assignment_bytes(named(member.all_it_has, image), version=_version_of(subscription)),
    )


def _plain(member: Member) -> Partitions:
    return {topic: frozenset(partitions) for topic, partitions in member.assigned.items()}
