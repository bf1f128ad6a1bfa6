"""What is promised of groups, told to the checkers as small stories: some keep the promise, some break it."""

import struct
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

import pytest

from klamm.sim.checkers.group_offsets import GroupOffsets, decoded_key, decoded_value, partition_for
from klamm.sim.checkers.group_owners import GroupOwners
from klamm.sim.checkers.group_progress import GroupProgress
from klamm.sim.clients.group_history import Commit, GroupHistory, Reading, Standing
from klamm.sim.clients.history import Fate, Key
from klamm.sim.promise import Broken

SPOT = ("group", "steady", 0)
KEY: Key = (b"steady".ljust(16, b"."), 0)


@dataclass
class NoImage:
    topics: dict[str, Any] = field(default_factory=dict)


class NoCluster:
    def latest_image(self) -> NoImage:
        return NoImage()


class Story:
    """Commits and readings at their moments."""

    def __init__(self) -> None:
        self.history = GroupHistory()
        self.offsets = GroupOffsets(cast(Any, NoCluster()), self.history, set())
        self.history.on_told = self.offsets.told

    def commit(self, name: str, offset: int, sent: float, answered: float = inf, *, epoch: int = 1) -> Commit:
        commit = Commit(name, name[0], SPOT, epoch, offset, sent)
        self.history.sent(commit)
        if answered < inf:
            self.history.was_acknowledged(commit, answered)
        return commit

    def read(self, offset: int, name: str, asked: float, *, was_behind: bool = False) -> None:
        self.history.was_read(Reading("reader", SPOT, offset, name, asked, was_behind), asked + 1)


def test_the_last_acknowledged_commit_is_read() -> None:
    story = Story()
    story.read(-1, "", 0)
    story.commit("a1", 5, 1, 2)
    story.read(5, "a1", 3)
    story.commit("a2", 7, 4, 5)
    story.read(7, "a2", 6)
    with pytest.raises(Broken, match=r"I26.*7 of a2"):
        story.read(5, "a1", 7)


def test_nothing_is_forgotten() -> None:
    story = Story()
    story.commit("a1", 5, 1, 2)
    with pytest.raises(Broken, match="told nothing"):
        story.read(-1, "", 3)


def test_while_a_commit_is_under_way_both_may_be_read() -> None:
    story = Story()
    story.commit("a1", 5, 1, 2)
    story.commit("a2", 7, 4, 9)
    story.read(5, "a1", 6)
    story.read(7, "a2", 6)


def test_a_commit_without_an_answer_may_count_late_or_never_but_once_it_was_read_it_stands() -> None:
    story = Story()
    story.commit("a1", 5, 1)
    story.commit("a2", 7, 4, 5)
    story.read(7, "a2", 6)
    story.read(5, "a1", 8)
    with pytest.raises(Broken, match="I26"):
        story.commit("a3", 9, 10, 11)
        story.read(5, "a1", 12)


def test_a_client_may_ask_for_an_earlier_offset() -> None:
    story = Story()
    story.commit("a1", 5, 1, 2)
    story.commit("a2", 3, 3, 4)
    story.read(3, "a2", 5)


def test_a_refused_commit_is_never_read() -> None:
    story = Story()
    story.commit("a1", 5, 1).fate = Fate.REFUSED
    with pytest.raises(Broken, match="refused"):
        story.read(5, "a1", 3)


def test_a_commit_is_read_as_it_was_made() -> None:
    story = Story()
    story.commit("a1", 5, 1, 2)
    with pytest.raises(Broken, match="I26"):
        story.read(6, "a1", 3)


def test_a_broker_that_has_not_heard_of_a_new_leader_is_no_excuse() -> None:
    story = Story()
    story.commit("a1", 5, 1, 2)
    story.commit("a2", 7, 4, 5)
    with pytest.raises(Broken, match="had not heard"):
        story.read(5, "a1", 7, was_behind=True)


def test_nobody_commits_for_a_partition_that_another_was_given_since() -> None:
    story = Story()
    story.history.on_told(standing("b"), 2, [SPOT], 10.0)
    story.commit("a1", 5, 9, 12, epoch=1)
    with pytest.raises(Broken, match="I26"):
        story.commit("a2", 6, 11, 12, epoch=1)


# Owners.


def standing(who: str, instance_id: str | None = None, heard_ms: float = 0.0, *, is_classic: bool = True) -> Standing:
    return Standing(who, "group", instance_id, 2_000, 2_000, is_classic, heard_ms)


def owners() -> GroupOwners:
    return GroupOwners(GroupHistory(), lambda group: False)


def test_two_members_do_not_own_one_partition() -> None:
    checker = owners()
    checker.told(standing("a"), 1, [SPOT], 10.0)
    with pytest.raises(Broken, match="I27"):
        checker.told(standing("b"), 2, [SPOT], 20.0)


def test_unless_the_first_has_given_it_up() -> None:
    checker, first = owners(), standing("a")
    checker.told(first, 1, [SPOT], 10.0)
    checker.released(first, [SPOT])
    checker.told(standing("b"), 2, [SPOT], 20.0)


def test_or_its_session_may_have_ended() -> None:
    checker = owners()
    checker.told(standing("a"), 1, [SPOT], 10.0)
    checker.told(standing("b", heard_ms=2_100.0), 2, [SPOT], 2_101.0)


def test_or_the_answer_is_so_old_that_it_says_nothing() -> None:
    checker = owners()
    checker.told(standing("b", heard_ms=5_000.0), 2, [SPOT], 5_001.0)
    checker.told(standing("a"), 1, [SPOT], 5_002.0)


def test_or_it_was_replaced_by_one_of_its_instance_id() -> None:
    checker, first, second = owners(), standing("a", "i"), standing("b", "i")
    checker.replaced(first)
    checker.told(first, 1, [SPOT], 10.0)
    checker.replaced(second)
    checker.told(second, 1, [SPOT], 20.0)
    checker.told(first, 1, [SPOT], 21.0)


def test_which_the_newer_protocol_does_not_do() -> None:
    checker, first = owners(), standing("a", "i", is_classic=False)
    second = standing("b", "i", is_classic=False)
    checker.replaced(first)
    checker.told(first, 1, [SPOT], 10.0)
    checker.replaced(second)
    with pytest.raises(Broken, match="I27"):
        checker.told(second, 1, [SPOT], 20.0)


def test_who_is_asked_to_give_something_up_has_so_long_to_do_it() -> None:
    member = standing("a", heard_ms=1_000.0)
    member.is_to_give_up(1_500.0)
    member.is_to_give_up(2_500.0)
    assert member.until_ms == 1_000.0 + 0.85 * 2_000


# Progress.


def test_nothing_is_passed_over() -> None:
    progress, member = GroupProgress(GroupHistory(), set()), standing("a")
    for offset in (0, 1, 3):
        progress.handled(member, KEY, offset)
    progress.start(member, KEY, 2)
    with pytest.raises(Broken, match="2 was not handled"):
        progress.start(member, KEY, 4)
    progress.handled(member, KEY, 2)
    progress.start(member, KEY, 4)
    assert progress.has_all("group", KEY, 4) and not progress.has_all("group", KEY, 5)


# The log of offsets.


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def test_records_of_offsets_are_read() -> None:
    key = struct.pack(">h", 1) + text("group") + text("steady") + struct.pack(">i", 2)
    assert decoded_key(key) == ("group", "steady", 2)
    assert decoded_key(struct.pack(">h", 2) + text("group")) is None
    newer = struct.pack(">hqi", 3, 17, 4) + text("a name") + struct.pack(">q", 0)
    older = struct.pack(">hq", 1, 17) + text("a name") + struct.pack(">qq", 0, 0)
    newest = struct.pack(">hqib", 4, 17, 4, 7) + b"a name" + struct.pack(">qb", 0, 0)
    assert decoded_value(newest) == decoded_value(newer) == decoded_value(older) == (17, "a name")


def test_groups_are_spread_by_javas_hash_of_their_names() -> None:
    # "Aa" and "BB" are the names everybody knows, and "polygenelubricants" has the smallest hash there is.
    assert partition_for("Aa", 50) == partition_for("BB", 50) == 2112 % 50
    assert partition_for("polygenelubricants", 50) == 0
