"""All members want the same topics: everyone gets the same number of partitions, give or take one.

With `floor` partitions for everybody and `extras` of them left, a member keeps up to `floor`, and one more while there
are extras. Nothing that is balanced can keep more, so no other balanced assignment moves less. What nobody keeps is
dealt out, one at a time to whoever has the least, first within the racks of the replicas and then to all.
"""

from collections import Counter
from collections.abc import Mapping
from heapq import heapify, heapreplace

from klamm.coordinator.groups.assignors.assignor import MemberSpec, TopicSpec
from klamm.coordinator.groups.assignors.holdings import Nearness, Place, kept_and_orphaned
from klamm.ids import Uuid


def evenly_held(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec], wanted: Mapping[str, frozenset[Uuid]]
) -> dict[str, list[Place]]:
    if not wanted:
        return {}
    held, orphans = kept_and_orphaned(members, topics, wanted)
    near = Nearness(members, topics)
    floor, extras = divmod(len(orphans) + sum(map(len, held.values())), len(held))
    for member_id, mine in held.items():
        quota = floor
        if len(mine) > floor and extras:
            quota, extras = floor + 1, extras - 1
        if len(mine) > quota:
            mine[:] = _dearest_first(mine, member_id, near)
            orphans += mine[quota:]
            del mine[quota:]
    deal = _Deal(held, floor, extras)
    left = deal.within_racks(orphans, near) if near.matters else sorted(orphans)
    deal.to_all(left)
    assert deal.is_done
    return held


def _dearest_first(mine: list[Place], member_id: str, near: Nearness) -> list[Place]:
    """In the order in which a member parts with them last: what is near; then a first of each topic, a second, …

    A member that has some of every topic keeps some of every topic, so the one that takes the rest gets a mixture too,
    and not all of the busiest topic.
    """
    seen: Counter[Uuid] = Counter()
    ranked = []
    for place in sorted(mine):
        ranked.append((near.matters and near.is_far(place, member_id), seen[place[0]], place))
        seen[place[0]] += 1
    return [place for _, _, place in sorted(ranked)]


class _Deal:
    """Partitions given to whoever has the least, while nobody exceeds what is due to them."""

    def __init__(self, held: dict[str, list[Place]], floor: int, extras: int) -> None:
        self._held = held
        self._floor = floor
        self._extras = extras

    def within_racks(self, orphans: list[Place], near: Nearness) -> list[Place]:
        """Deals what a member near to it has room for, the hardest to please first; the rest is handed back."""
        lines: dict[str, list[tuple[int, str]]] = {}
        for member_id, mine in self._held.items():
            if rack := near.rack_of(member_id):
                lines.setdefault(rack, []).append((len(mine), member_id))
        crowd = {rack: len(line) for rack, line in lines.items()}
        for line in lines.values():
            heapify(line)
        left = []
        for place in sorted(orphans, key=lambda place: (sum(crowd.get(r, 0) for r in near.racks_of(place)), place)):
            heads = [(lines[rack][0], rack) for rack in near.racks_of(place) if rack in lines]
            if heads and self._has_room(min(heads)[0][0]):
                self._give(place, lines[min(heads)[1]])
            else:
                left.append(place)
        return sorted(left)

    def to_all(self, orphans: list[Place]) -> None:
        line = [(len(mine), member_id) for member_id, mine in self._held.items()]
        heapify(line)
        for place in orphans:
            assert self._has_room(line[0][0])
            self._give(place, line)

    @property
    def is_done(self) -> bool:
        return not self._extras and all(len(mine) in (self._floor, self._floor + 1) for mine in self._held.values())

    def _has_room(self, load: int) -> bool:
        return load < self._floor or (load == self._floor and self._extras > 0)

    def _give(self, place: Place, line: list[tuple[int, str]]) -> None:
        load, member_id = line[0]
        self._extras -= load == self._floor
        self._held[member_id].append(place)
        heapreplace(line, (load + 1, member_id))
