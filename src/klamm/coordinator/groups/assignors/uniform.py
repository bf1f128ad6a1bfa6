"""`uniform`, the default: everybody gets the same number of partitions, and as little as possible moves.

The promises, the stronger first. Balance: with equal subscriptions no two members differ by more than one partition;
with different ones no chain of hand-overs would even out two members any further. Stickiness: what balance does not
ask for stays where it is. Nearness: a partition that needs a new owner goes to a member in a rack of one of its
replicas if one has room; a partition that has an owner is not moved for that. So an assignment that is complete and
balanced is its own successor, and assigning twice never moves anything.

Kafka's assignor of this name has the same aims, knows no racks any more, and grants the odd partitions in the order of
a hash table; ours grants them to those who have them already, which is what makes its number of moves the least.
"""

from collections.abc import Mapping

from klamm.coordinator.groups.assignors.assignor import Assignment, MemberSpec, TopicSpec
from klamm.coordinator.groups.assignors.even import evenly_held
from klamm.coordinator.groups.assignors.holdings import assignment_of
from klamm.coordinator.groups.assignors.mixed import fairly_held
from klamm.ids import Uuid


class Uniform:
    name = "uniform"

    def assign(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> Assignment:
        wanted = _wanted(members, topics)
        if len(set(wanted.values())) <= 1:
            held = evenly_held(members, topics, wanted)
        else:
            held = fairly_held(members, topics, wanted)
        return assignment_of(members, held)


def _wanted(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> dict[str, frozenset[Uuid]]:
    """The existing topics a member subscribes to, for members that have any. Equal subscriptions are one object."""
    existing: dict[frozenset[Uuid], frozenset[Uuid]] = {}
    for member in members.values():
        if member.subscribed not in existing:
            existing[member.subscribed] = frozenset(member.subscribed & topics.keys())
    wanted = {member_id: existing[members[member_id].subscribed] for member_id in sorted(members)}
    return {member_id: wish for member_id, wish in wanted.items() if wish}
