"""Members want different topics: as equal as their subscriptions allow, and hardly anything moves.

Who has the most gives to who has the least, directly or along a chain: a gives a partition to b, who gives another
one to c. While there is a chain from a member to one that has at least two fewer, the chain is followed; when there
is none, no assignment is better balanced (this is known of semi-matchings: the sum of squared loads is least exactly
if no such chain exists). The shortest chain is taken; in the end, partitions go back to their owners where that
leaves the balance as it is. That the moves are the least possible is not promised, but nearly always true.

Members of one subscription form a crowd, since what one of them may take all of them may. In the search a topic and
a crowd are looked at once.
"""

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from klamm.coordinator.groups.assignors.assignor import MemberSpec, TopicSpec
from klamm.coordinator.groups.assignors.holdings import Nearness, Place, crowds, kept_and_orphaned
from klamm.ids import Uuid

Steps: TypeAlias = dict[str, tuple[str, Uuid]]
"""Who can get something: from whom, and of which topic."""


def fairly_held(
    members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec], wanted: Mapping[str, frozenset[Uuid]]
) -> dict[str, list[Place]]:
    kept, orphans = kept_and_orphaned(members, topics, wanted)
    group = _Group(kept, wanted, Nearness(members, topics))
    group.adopt(orphans)
    group.even_out()
    group.bring_home()
    return group.held()


class _Group:
    def __init__(self, kept: Mapping[str, list[Place]], wanted: Mapping[str, frozenset[Uuid]], near: Nearness) -> None:
        self._wanted = wanted
        self._near = near
        self._home = {place: member_id for member_id, mine in kept.items() for place in mine}
        self._owner: dict[Place, str] = {}
        self._held: dict[str, dict[Uuid, set[int]]] = {member_id: {} for member_id in kept}
        self._load = dict.fromkeys(kept, 0)
        for place, member_id in self._home.items():
            self._give(place, member_id)
        self._crowds, self._takers = crowds(wanted)

    def held(self) -> dict[str, list[Place]]:
        return {member_id: list(self._places(member_id)) for member_id in self._held}

    def adopt(self, orphans: list[Place]) -> None:
        """Everything finds an owner: who has the least so far, of these one nearby. What few want comes first."""
        by_takers: dict[tuple[int, ...], list[Place]] = {}
        for place in orphans:
            by_takers.setdefault(tuple(self._takers[place[0]]), []).append(place)
        popularity = {takers: sum(len(self._crowds[crowd]) for crowd in takers) for takers in by_takers}
        for takers in sorted(by_takers, key=lambda takers: (popularity[takers], takers)):
            lines = self._lines_by_rack(takers)
            for place in by_takers[takers]:
                racks = self._near.racks_of(place)
                heads = [(line[0][0], rack not in racks, line[0][1], rack) for rack, line in lines.items()]
                load, _, member_id, rack = min(heads)
                self._give(place, member_id)
                heapreplace(lines[rack], (load + 1, member_id))

    def even_out(self) -> None:
        """Follows chains from whoever has the most until there is none left.

        If no chain leads from a member with the most, then none leads from anybody in its reach either, and what they
        have is wanted by nobody else: they are settled, and the search goes on without them.
        """
        line = [(-load, member_id) for member_id, load in self._load.items()]
        heapify(line)
        settled: set[str] = set()
        while line:
            load, giver = heappop(line)
            if giver in settled or -load != self._load[giver]:
                continue
            steps, takers = self._nearest(giver, -load - 2, settled)
            if not takers:
                settled.update(steps)
                settled.add(giver)
                continue
            for taker in takers:
                # The first chain is certain. The others are too where they are one step, and still there.
                if taker == takers[0] or self._can_give(giver, steps[taker], taker):
                    self._follow(steps, giver, taker)
                    heappush(line, (-self._load[taker], taker))
            heappush(line, (-self._load[giver], giver))

    def bring_home(self) -> None:
        """Partitions that left their owner go back where that costs no balance: a chain does not know of the next."""
        away = sorted(place for place, home in self._home.items() if self._owner[place] != home)
        while away:
            still_away = [place for place in away if not self._maybe_bring_home(place)]
            if len(still_away) == len(away):
                break
            away = still_away

    def _maybe_bring_home(self, place: Place) -> bool:
        """Back to its home if that has less than where it is now, or has a guest that can come here in exchange."""
        home, now = self._home[place], self._owner[place]
        if home == now:  # It came home in exchange for another one.
            return True
        if self._load[home] >= self._load[now]:
            guests = [guest for guest in self._places(home) if self._home.get(guest) != home]
            welcome = [guest for guest in guests if guest[0] in self._wanted[now]]
            if not welcome:
                return False
            self._move(min(welcome, key=lambda guest: (self._home.get(guest) != now, guest)), now)
        self._move(place, home)
        return True

    def _nearest(self, giver: str, at_most: int, settled: set[str]) -> tuple[Steps, list[str]]:
        """Who is reached from `giver` round by round, and the first who have `at_most` partitions, the least first."""
        steps: Steps = {}
        seen_topics: set[Uuid] = set()
        seen_crowds: set[int] = set()
        this_round = [giver]
        while this_round:
            next_round: list[str] = []
            for member_id in this_round:
                for topic in self._held[member_id]:
                    if topic in seen_topics:
                        continue
                    seen_topics.add(topic)
                    for crowd in self._takers[topic]:
                        if crowd not in seen_crowds:
                            seen_crowds.add(crowd)
                            found = [m for m in self._crowds[crowd] if m not in settled and m != giver]
                            steps.update(dict.fromkeys(found, (member_id, topic)))
                            next_round += found
            if takers := [(self._load[m], m) for m in next_round if self._load[m] <= at_most]:
                return steps, [member_id for _, member_id in sorted(takers)]
            this_round = next_round
        return steps, []

    def _can_give(self, giver: str, step: tuple[str, Uuid], taker: str) -> bool:
        return step[0] == giver and step[1] in self._held[giver] and self._load[taker] <= self._load[giver] - 2

    def _follow(self, steps: Steps, giver: str, taker: str) -> None:
        """Moves one partition along each step, from the end: everyone between gives what it has before it gets."""
        while taker != giver:
            previous, topic = steps[taker]
            places = [(topic, partition) for partition in self._held[previous][topic]]
            self._move(min(places, key=lambda place: self._regret(place, previous, taker)), taker)
            taker = previous

    def _regret(self, place: Place, giver: str, taker: str) -> tuple[bool, bool, int]:
        """The smaller, the better it is to move this one: what is far from here, what is near there."""
        return not self._near.is_far(place, giver), self._near.is_far(place, taker), -place[1]

    def _lines_by_rack(self, takers: tuple[int, ...]) -> dict[str, list[tuple[int, str]]]:
        """The subscribers with their loads, as heaps; those without a rack stand in a line of their own."""
        lines: dict[str, list[tuple[int, str]]] = {}
        for crowd in takers:
            for member_id in self._crowds[crowd]:
                lines.setdefault(self._near.rack_of(member_id), []).append((self._load[member_id], member_id))
        for line in lines.values():
            heapify(line)
        return lines

    def _places(self, member_id: str) -> Iterator[Place]:
        for topic, partitions in self._held[member_id].items():
            for partition in partitions:
                yield topic, partition

    def _move(self, place: Place, taker: str) -> None:
        giver = self._owner[place]
        partitions = self._held[giver][place[0]]
        partitions.remove(place[1])
        if not partitions:
            del self._held[giver][place[0]]
        self._load[giver] -= 1
        self._give(place, taker)

    def _give(self, place: Place, taker: str) -> None:
        self._owner[place] = taker
        self._held[taker].setdefault(place[0], set()).add(place[1])
        self._load[taker] += 1
