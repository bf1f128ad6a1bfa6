"""What every assignor promises, whatever the group looks like."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.groups.assignors import ASSIGNORS, Assignor, MemberSpec, TopicSpec
from tests.coordinator.assignors.drawing import check_complete, drawn_members, drawn_topics, settled, topic_id

ROOT = Path(__file__).parents[3]


def test_uniform_is_the_default() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]
    assert all(assignor.name == name for name, assignor in ASSIGNORS.items())


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(random=st.randoms(use_true_random=False), equal=st.booleans(), racks=st.booleans())
def test_every_partition_has_one_owner_who_wants_it(
    assignor: Assignor, random: Random, equal: bool, racks: bool
) -> None:
    topics = drawn_topics(random, racks=racks)
    members = drawn_members(random, topics, equal=equal, racks=racks)
    check_complete(members, topics, assignor.assign(members, topics))


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(random=st.randoms(use_true_random=False), equal=st.booleans(), racks=st.booleans())
def test_assigning_again_changes_nothing(assignor: Assignor, random: Random, equal: bool, racks: bool) -> None:
    topics = drawn_topics(random, racks=racks)
    members = drawn_members(random, topics, equal=equal, racks=racks)
    assignment = assignor.assign(members, topics)
    assert assignor.assign(settled(members, assignment), topics) == assignment


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(random=st.randoms(use_true_random=False), equal=st.booleans(), racks=st.booleans())
def test_the_order_in_which_members_and_topics_come_is_nothing(
    assignor: Assignor, random: Random, equal: bool, racks: bool
) -> None:
    topics = drawn_topics(random, racks=racks)
    members = drawn_members(random, topics, equal=equal, racks=racks)
    shuffled = dict(random.sample(sorted(members.items(), key=lambda item: item[0]), len(members)))
    reversed_topics = dict(reversed(topics.items()))
    assert assignor.assign(shuffled, reversed_topics) == assignor.assign(members, topics)


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
def test_nobody_and_nothing(assignor: Assignor) -> None:
    topic = topic_id(0)
    lonely = {"a": MemberSpec("a", subscribed=frozenset({topic}))}
    assert assignor.assign({}, {topic: TopicSpec(3)}) == {}
    assert assignor.assign(lonely, {}) == {"a": {}}
    assert assignor.assign(lonely, {topic: TopicSpec(0)}) == {"a": {}}
    assert assignor.assign({"a": MemberSpec("a")}, {topic: TopicSpec(3)}) == {"a": {}}


def test_the_hash_seed_is_nothing() -> None:
    """Sets of strings and bytes iterate in another order in another process; the answer is the same."""
    assert digest(hash_seed=1) == digest(hash_seed=2) == digest(hash_seed=3)


def digest(hash_seed: int) -> str:
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-m", "tests.coordinator.assignors.digest"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout
