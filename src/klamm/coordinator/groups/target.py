"""The target: what each member is meant to have, as of one epoch.

Whichever member's heartbeat finds that the group's epoch is ahead of the target's, brings about the next target: the
assignor most members ask for is given everybody's subscription and what everybody was meant to have before. Only
what changed is written.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from klamm.coordinator.groups.assignors import ASSIGNORS, MemberSpec
from klamm.coordinator.groups.consumer_member import Member, Partitions, target_record
from klamm.coordinator.groups.subscribed import Resolved, existing, ids_of, names_of, spec_of
from klamm.coordinator.records import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupRecord,
)
from klamm.ids import Epoch, Uuid
from klamm.metadata.image import Image


def is_time_for_a_target(last_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Targets are this far apart at least, so that many members that come together are one rebalance. A last one in the
    future was written by a clock that was wrong, and nobody waits for that."""
    return not last_ms <= now_ms < last_ms + interval_ms


def preferred_assignor(members: Iterable[Member], offered: Sequence[str]) -> str:
    """The one most members ask for, else the first; of two that as many ask for, the one that is offered earlier."""
    votes = Counter(member.profile.server_assignor for member in members)
    return max(offered, key=lambda name: (votes[name], -offered.index(name)))


def next_target(
    members: Collection[Member],
    before: Mapping[str, Partitions],
    patterns: Mapping[str, Resolved],
    image: Image,
    assignor: str,
) -> dict[str, dict[Uuid, frozenset[int]]]:
    """By member id. `before` has what members were meant to have so far, a successor's under its own id."""
    topics = {topic.topic_id: spec_of(topic, image) for topic in existing(members, patterns, image)}
    specs = {
        member.member_id: MemberSpec(
            member.member_id,
            member.profile.instance_id,
            member.profile.rack_id,
            ids_of(names_of(member, patterns), image),
            before.get(member.member_id, {}),
        )
        for member in sorted(members, key=lambda member: member.member_id)
    }
    return ASSIGNORS[assignor].assign(specs, topics)


def target_records(
    group_id: str,
    before: Mapping[str, Partitions],
    after: Mapping[str, Partitions],
    epoch: Epoch,
    now_ms: int,
) -> list[GroupRecord]:
    """What became different, and last the epoch: everything up to there belongs together."""
    records = [
        target_record(group_id, member_id, after[member_id])
        for member_id in sorted(after)
        if before.get(member_id) != after[member_id]
    ]
    records.append(target_epoch_record(group_id, epoch, now_ms))
    return records


def target_epoch_record(group_id: str, epoch: Epoch, now_ms: int) -> GroupRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now_ms)
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group=group_id), value)
