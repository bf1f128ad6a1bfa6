"""Groups drawn at random, and what a beginner would say about an assignment."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import md5
from itertools import combinations, product
from random import Random
from typing import TypeAlias

from klamm.coordinator.groups.assignors import Assignment, MemberSpec, TopicSpec
from klamm.ids import Uuid

Members: TypeAlias = dict[str, MemberSpec]
Topics: TypeAlias = dict[Uuid, TopicSpec]

RACKS = "abc"


def topic_id(number: int) -> Uuid:
    return md5(str(number).encode(), usedforsecurity=False).digest()


def drawn_topics(random: Random, most: int = 4, most_partitions: int = 9, *, racks: bool = False) -> Topics:
    topics = {}
    for number in range(random.randint(1, most)):
        count = random.randint(0 if random.random() < 0.1 else 1, most_partitions)
        places = [frozenset(random.sample(RACKS, random.randint(1, 2))) for _ in range(count)] if racks else []
        topics[topic_id(number)] = TopicSpec(count, places[: random.choice([count, count, count // 2])])
    return topics


def drawn_members(random: Random, topics: Topics, *, equal: bool, most: int = 7, racks: bool = False) -> Members:
    """Members whose assignments so far may be any nonsense: claimed twice, not subscribed to, not existing."""
    known = [*topics, topic_id(99)]
    wish = frozenset(random.sample(known, random.randint(1, len(known))))
    members = {}
    for _ in range(random.randint(1, most)):
        member_id = f"member-{random.randrange(10**6)}"
        members[member_id] = MemberSpec(
            member_id,
            instance_id=f"instance-{random.randrange(10**6)}" if random.random() < 0.3 else None,
            rack=random.choice([*RACKS, *RACKS, None]) if racks else None,
            subscribed=wish if equal else frozenset(random.sample(known, random.randint(0, len(known)))),
            assigned={
                topic: frozenset(random.sample(range(12), random.randint(0, 5)))
                for topic in random.sample(known, random.randint(0, len(known)))
            },
        )
    return members


def settled(members: Members, assignment: Assignment) -> Members:
    """The same members, each with what was assigned to it."""
    return {member_id: replace(member, assigned=assignment.get(member_id, {})) for member_id, member in members.items()}


def fresh(members: Members) -> Members:
    return settled(members, {})


def places(assignment: Mapping[str, Mapping[Uuid, frozenset[int]]]) -> Iterator[tuple[str, Uuid, int]]:
    for member_id, mine in assignment.items():
        for topic, partitions in mine.items():
            for partition in partitions:
                yield member_id, topic, partition


def loads(assignment: Assignment) -> list[int]:
    return [sum(map(len, mine.values())) for mine in assignment.values()]


def check_complete(members: Members, topics: Topics, assignment: Assignment) -> None:
    """Every partition of a wanted topic has one owner, who wants it; nobody is forgotten; nothing is empty."""
    assert assignment.keys() == members.keys()
    assert all(partitions for mine in assignment.values() for partitions in mine.values())
    wanted = {topic for member in members.values() for topic in member.subscribed}
    expected = Counter((topic, p) for topic, spec in topics.items() if topic in wanted for p in range(spec.partitions))
    assert Counter((topic, p) for _, topic, p in places(assignment)) == expected
    assert all(topic in members[member_id].subscribed for member_id, topic, _ in places(assignment))


def moves(before: Members, assignment: Assignment) -> int:
    """How many partitions have another owner than `before`, of those that had one."""
    homes = {(topic, p): member_id for member_id, member in before.items() for topic, p in _held(member)}
    return sum(homes.get((topic, p), member_id) != member_id for member_id, topic, p in places(assignment))


def least_even_moves(members: Members, had: Mapping[str, int], unowned: int) -> int:
    """The least number of moves to a balanced assignment, found by trying every choice of who gets one more.

    `had` says how many wanted partitions each member has, `unowned` how many nobody has.
    """
    total = sum(had.values()) + unowned
    floor, extras = divmod(total, len(members))
    return min(
        sum(max(0, had[member_id] - floor - (member_id in lucky)) for member_id in members)
        for lucky in combinations(sorted(members), extras)
    )


def best_fair(members: Members, topics: Topics) -> tuple[int, int]:
    """The least sum of squared loads, and the least moves with it, found by trying every assignment there is."""
    homes = {(topic, p): member_id for member_id, member in members.items() for topic, p in _held(member)}
    takers = {topic: [m for m, member in members.items() if topic in member.subscribed] for topic in topics}
    every = [(topic, p) for topic, spec in topics.items() if takers[topic] for p in range(spec.partitions)]
    return min(
        (
            sum(count**2 for count in Counter(owners).values()),
            sum(homes.get(place, owner) != owner for place, owner in zip(every, owners, strict=True)),
        )
        for owners in product(*(takers[topic] for topic, _ in every))
    )


def _held(member: MemberSpec) -> Iterator[tuple[Uuid, int]]:
    return ((topic, p) for topic, partitions in member.assigned.items() for p in partitions)
