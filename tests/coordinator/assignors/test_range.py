"""`range`: contiguous, alike for topics that are alike, and in an order that outlives restarts."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.groups.assignors import ASSIGNORS, Assignment, MemberSpec, TopicSpec
from klamm.ids import Uuid
from tests.coordinator.assignors.drawing import Members, Topics, drawn_members, drawn_topics, topic_id

RANGE = ASSIGNORS["range"]
ORDERS, PAYMENTS, CLICKS = topic_id(0), topic_id(1), topic_id(2)


def members_of(*ids: str, topics: frozenset[Uuid]) -> Members:
    return {member_id: MemberSpec(member_id, subscribed=topics) for member_id in ids}


@pytest.mark.parametrize(
    ("count", "ranges"),
    [
        (1, [range(10)]),
        (3, [range(4), range(4, 7), range(7, 10)]),
        (10, [range(p, p + 1) for p in range(10)]),
        (13, [range(p, p + 1) for p in range(10)] + [range(0)] * 3),
    ],
)
def test_ten_partitions(count: int, ranges: list[range]) -> None:
    members = members_of(*(f"m{number:02}" for number in range(count)), topics=frozenset({ORDERS}))
    assignment = RANGE.assign(members, {ORDERS: TopicSpec(10)})
    assert [assignment[m].get(ORDERS, frozenset()) for m in sorted(members)] == [frozenset(r) for r in ranges]


def test_topics_of_the_same_size_are_cut_alike() -> None:
    topics = {ORDERS: TopicSpec(7), PAYMENTS: TopicSpec(7), CLICKS: TopicSpec(2)}
    assignment = RANGE.assign(members_of("a", "b", "c", topics=frozenset(topics)), topics)
    assert all(mine[ORDERS] == mine[PAYMENTS] for mine in assignment.values())
    assert assignment["c"] == {ORDERS: frozenset({5, 6}), PAYMENTS: frozenset({5, 6})}


def test_static_members_come_first_by_their_instance() -> None:
    wish = frozenset({ORDERS})
    members = {
        "a": MemberSpec("a", subscribed=wish),
        "b": MemberSpec("b", instance_id="i2", subscribed=wish),
        "c": MemberSpec("c", instance_id="i1", subscribed=wish),
    }
    expected = {"c": {ORDERS: frozenset({0})}, "b": {ORDERS: frozenset({1})}, "a": {ORDERS: frozenset({2})}}
    assert RANGE.assign(members, {ORDERS: TopicSpec(3)}) == expected


def test_a_static_member_that_comes_back_under_another_id_has_the_same() -> None:
    wish, topics = frozenset({ORDERS}), {ORDERS: TopicSpec(5)}
    before = {m: MemberSpec(m, instance_id=i, subscribed=wish) for m, i in (("a", "i1"), ("b", "i2"))}
    after = {m: MemberSpec(m, instance_id=i, subscribed=wish) for m, i in (("z", "i1"), ("b", "i2"))}
    assert RANGE.assign(after, topics)["z"] == RANGE.assign(before, topics)["a"]


@given(random=st.randoms(use_true_random=False), equal=st.booleans())
def test_against_dealing_one_after_another(random: Random, equal: bool) -> None:
    topics = drawn_topics(random)
    members = drawn_members(random, topics, equal=equal)
    assert RANGE.assign(members, topics) == naive(members, topics)


def naive(members: Members, topics: Topics) -> Assignment:
    """Walks through the partitions of each topic, and on to the next member when the one has had its share."""
    static = sorted((m for m in members.values() if m.instance_id), key=lambda m: (m.instance_id, m.member_id))
    dynamic = sorted((m for m in members.values() if not m.instance_id), key=lambda m: m.member_id)
    assignment: Assignment = {member_id: {} for member_id in members}
    for topic, spec in topics.items():
        takers = [m.member_id for m in static + dynamic if topic in m.subscribed]
        for partition in range(spec.partitions if takers else 0):
            # With 7 partitions and 3 takers: 3 + 2 + 2.
            shares = [len(range(number, spec.partitions, len(takers))) for number in range(len(takers))]
            owner = next(m for number, m in enumerate(takers) if partition < sum(shares[: number + 1]))
            assignment[owner][topic] = assignment[owner].get(topic, frozenset()) | {partition}
    return assignment
