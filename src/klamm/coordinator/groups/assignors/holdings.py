"""What assignors begin with: who keeps what for now, what has no owner, who wants the same, and who is near to what.

A member keeps a partition if it subscribes to the topic and the partition exists. Two members are never meant to have
the same one; should a log say so all the same, the first of them keeps it.
"""

from collections.abc import Mapping
from typing import TypeAlias

from klamm.coordinator.groups.assignors.assignor import Assignment, MemberSpec, TopicSpec
from klamm.ids import Uuid

Place: TypeAlias = tuple[Uuid, int]
"""A partition of a topic."""

_NOWHERE: frozenset[str] = frozenset()


def kept_and_orphaned(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec], wanted: Mapping[str, frozenset[Uuid]]
) -> tuple[dict[str, list[Place]], list[Place]]:
    """What each member of `wanted` may keep of what it had, and the partitions of wanted topics left over; sorted."""
    owned: set[Place] = set()
    kept: dict[str, list[Place]] = {}
    for member_id in sorted(wanted):
        mine: list[Place] = []
        for topic, partitions in sorted(members[member_id].assigned.items()):
            if topic in wanted[member_id]:
                existing = topics[topic].partitions
                mine += [(topic, p) for p in sorted(partitions) if 0 <= p < existing and (topic, p) not in owned]
        owned.update(mine)
        kept[member_id] = mine
    every_topic = sorted(frozenset().union(*set(wanted.values())))
    places = [(topic, p) for topic in every_topic for p in range(topics[topic].partitions)]
    return kept, [place for place in places if place not in owned]


def crowds(wanted: Mapping[str, frozenset[Uuid]]) -> tuple[list[list[str]], dict[Uuid, list[int]]]:
    """The members of equal subscriptions, in the order of `wanted`, and for each topic which of these want it.

    Large groups mostly consist of one such crowd, or two: what is done for each of them need not be done for everyone.
    """
    members: dict[frozenset[Uuid], list[str]] = {}
    for member_id, wish in wanted.items():
        members.setdefault(wish, []).append(member_id)
    takers: dict[Uuid, list[int]] = {}
    for number, wish in enumerate(members):
        for topic in wish:
            takers.setdefault(topic, []).append(number)
    return list(members.values()), takers


class Nearness:
    """Which partitions have a replica in a member's rack. Where a rack is not known, nothing is near."""

    def __init__(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> None:
        self._rack = {member_id: spec.rack or "" for member_id, spec in members.items()}
        self._topics = topics
        self.matters = any(self._rack.values()) and any(any(spec.racks) for spec in topics.values())

    def rack_of(self, member_id: str) -> str:
        """Empty where it is not known."""
        return self._rack[member_id]

    def racks_of(self, place: Place) -> frozenset[str]:
        racks = self._topics[place[0]].racks
        return racks[place[1]] if place[1] < len(racks) else _NOWHERE

    def is_far(self, place: Place, member_id: str) -> bool:
        return self._rack[member_id] not in self.racks_of(place)


def assignment_of(members: Mapping[str, MemberSpec], held: Mapping[str, list[Place]]) -> Assignment:
    return {member_id: _by_topic(held.get(member_id, [])) for member_id in sorted(members)}


def _by_topic(places: list[Place]) -> dict[Uuid, frozenset[int]]:
    found: dict[Uuid, list[int]] = {}
    for topic, partition in sorted(places):
        found.setdefault(topic, []).append(partition)
    return {topic: frozenset(partitions) for topic, partitions in found.items()}
