"""`range`: each topic is cut into as many contiguous ranges as it has subscribers.

The ranges go to the members in one order for all topics, and the first ones are longer by one where it does not
divide. So topics with the same number of partitions and the same subscribers are cut alike: whoever has partition 3
of one has partition 3 of the other, which joins of two topics live on.

It does not look at what a member had before. It is sticky only in that the order is: static members come first, by
their instance id, which outlives a restart; the others follow by member id. Kafka's does exactly the same, and racks
are ignored by both.
"""

from collections.abc import Mapping

from klamm.coordinator.groups.assignors.assignor import Assignment, MemberSpec, TopicSpec
from klamm.coordinator.groups.assignors.holdings import crowds
from klamm.ids import Uuid


class Range:
    name = "range"

    def assign(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> Assignment:
        in_line = sorted(members, key=lambda member_id: _place_in_line(members[member_id]))
        place = {member_id: number for number, member_id in enumerate(in_line)}
        groups, takers = crowds({member_id: members[member_id].subscribed for member_id in in_line})
        lines: dict[tuple[int, ...], list[str]] = {}
        assignment: Assignment = {member_id: {} for member_id in sorted(members)}
        for topic in sorted(takers.keys() & topics.keys()):
            key = tuple(takers[topic])
            if key not in lines:
                lines[key] = sorted((m for group in key for m in groups[group]), key=place.__getitem__)
            _cut(topic, topics[topic].partitions, lines[key], assignment)
        return assignment


def _place_in_line(member: MemberSpec) -> tuple[bool, str, str]:
    return member.instance_id is None, member.instance_id or "", member.member_id


def _cut(topic: Uuid, partitions: int, takers: list[str], assignment: Assignment) -> None:
    length, longer = divmod(partitions, len(takers))
    start = 0
    for place, member_id in enumerate(takers):
        end = start + length + (place < longer)
        if end == start:
            break
        assignment[member_id][topic] = frozenset(range(start, end))
        start = end
    assert start == partitions
