"""The coordinator of groups and its log: what it answers is safe, and it answers nothing once it is not the one."""

from dataclasses import replace
from typing import Any

import pytest

from klamm.broker import loading
from klamm.broker.facts import GroupsNotWritten
from klamm.broker.offsets_topic import _java_hash
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.errors import ErrorCode
from klamm.handlers import find_coordinator
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.join_group import JoinGroupResponse
from tests.broker.groups_world import (
    GROUP,
    GroupsWorld,
    beaten,
    commit,
    fetched,
    joined,
    listed,
    synced,
    the_topic_is_that_of_the_offsets,
)

__all__ = ["the_topic_is_that_of_the_offsets"]
NONE = [ErrorCode.NONE]
NOT_HERE = [ErrorCode.NOT_COORDINATOR]
NOT_NOW = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
ALONE = (0,)
SOMEBODY = JoinGroupResponse(generation_id=1, member_id="somebody")


def test_a_commit_is_answered_when_the_others_have_it() -> None:
    world = GroupsWorld()
    codes = commit(world[0], 7)
    assert codes == []
    world.settle_all()
    assert codes == NONE and fetched(world[0]) == [7]


def test_what_the_coordinator_writes_is_not_looked_at_as_a_stranger_s_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has just built it."""
    looked: list[object] = []
    monkeypatch.setattr("klamm.log.admission.validated", lambda *batch: looked.append(batch))
    world = GroupsWorld()
    codes = commit(world[0], 7)
    world.settle_all()
    assert codes == NONE
    assert not looked


def test_who_reads_waits_for_what_was_written_before() -> None:
    world = GroupsWorld()
    commit(world[0], 7)
    found, groups = fetched(world[0]), listed(world[0])
    assert not found and not groups, "the answer would come from a record that may be lost"
    world.settle_all()
    assert found == [7] and [each.group_id for each in groups[0].groups] == [GROUP]


def test_an_answer_that_does_not_become_safe_in_time_is_none() -> None:
    world = GroupsWorld()
    codes = commit(world[0], 7)
    world.advance(4_999)
    assert not codes
    world.advance(1)
    assert codes == NOT_NOW


def test_others_are_not_the_coordinator() -> None:
    world = GroupsWorld()
    assert commit(world[1], 7) == NOT_HERE and fetched(world[1]) == [f"error {ErrorCode.NOT_COORDINATOR}"]
    assert listed(world[1])[0].groups == [] and listed(world[1])[0].error_code == 0


def test_a_deposed_leader_sends_everybody_elsewhere() -> None:
    world = GroupsWorld()
    codes, found, joining = commit(world[0], 7), fetched(world[0]), joined(world[0])
    world.lead(1)
    world[0].follow_all()
    assert codes == NOT_HERE and found == [f"error {ErrorCode.NOT_COORDINATOR}"]
    assert joining[0].error_code == ErrorCode.NOT_COORDINATOR
    assert commit(world[0], 8) == NOT_HERE


def test_the_next_leader_knows_what_the_log_has() -> None:
    world = GroupsWorld()
    commit(world[0], 7)
    world.settle_all()
    world.take_over(1)
    assert fetched(world[1]) == [7]
    world.take_over(0)
    assert fetched(world[0]) == [7]


def test_what_a_new_leader_found_is_not_told_before_it_is_committed() -> None:
    world = GroupsWorld()
    commit(world[0], 7)
    world[1].bring_answer(0)
    world.lead(1)
    world[1].follow_all()
    found = fetched(world[1])
    assert not found and world[1].partition().log.end_offset == 1
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert found == [7]


def test_loading_takes_its_time_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SLICE_BYTES", 300)
    world = GroupsWorld()
    for number in range(20):
        commit(world[0], number, number % 3)
    world.settle_all()
    world.lead(1)
    world[1].follow_all()
    slices = 0
    while commit(world[1], 0) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]:
        assert listed(world[1])[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert beaten(world[1], SOMEBODY) == NONE, "Kafka says so, and a heartbeat of aiokafka dies of anything else"
        assert synced(world[1], SOMEBODY)[0].error_code == ErrorCode.REBALANCE_IN_PROGRESS, "fatal otherwise"
        slices += 1
        assert world[1].broker.coordination.next_due_ms == world.now.monotonic_ms, "without a pause"
        world.tick()
    assert slices > 3
    world.settle_all()
    assert fetched(world[1], partition=1) == [19]


def test_what_happens_to_topics_meanwhile_is_known_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard kept the image it began with until the next change, and offsets of deleted topics for good."""
    monkeypatch.setattr(loading, "SLICE_BYTES", 300)
    world = GroupsWorld()
    world.create("clicks")
    for number in range(20):
        commit(world[0], number, number % 3)
        commit(world[0], number, number % 3, "clicks")
    world.settle_all()
    world.lead(1)
    world[1].follow_all()
    world.delete("orders")
    world.delete("clicks")
    world[1].follow_all()
    world.create("clicks")
    for _ in range(50):
        world.tick()
    world.settle_all()
    world.create("orders")
    assert fetched(world[1]) == [-1]
    assert fetched(world[1], topic="clicks") == [-1], "another topic of the same name"
    hosted = world[1].broker.coordination._hosted[0]
    assert "orders" not in {topic for topic, _ in hosted.shard._offsets.places_of(GROUP)}


def test_who_is_not_counted_on_answers_nothing() -> None:
    world = GroupsWorld()
    groups = world[0].broker.coordination
    groups.counted_on_until_ms = world.now.monotonic_ms + 100
    before, joining = commit(world[0], 7), joined(world[0])
    assert not before
    world.advance(100)
    world.settle_all()
    assert before == NOT_NOW, "it may be another's by now"
    assert commit(world[0], 8, group_id="other") == NOT_NOW
    assert world[0].partition().log.end_offset == 1, "nor is it written"
    assert fetched(world[0]) == [f"error {ErrorCode.COORDINATOR_NOT_AVAILABLE}"]
    world.pass_ms(3_000)
    assert not joining, "nor does the clock bring an answer"
    groups.counted_on_until_ms = world.now.monotonic_ms + 60_000
    assert fetched(world[0]) == [7]
    world.pass_ms(200)
    assert joining[0].error_code == 0, "it goes on where it stood"


def test_a_broken_disk_sends_everybody_elsewhere() -> None:
    world = GroupsWorld(ALONE)
    joining = joined(world[0])
    world[0].broker.fail(world[0].partition(), "the disk is broken")
    world[0].settle()
    assert joining[0].error_code == ErrorCode.NOT_COORDINATOR
    assert commit(world[0], 7) == NOT_HERE


def test_what_cannot_be_written_is_not_true() -> None:
    world = GroupsWorld(ALONE)
    world[0].disk.fail_once("append")
    codes = commit(world[0], 7)
    assert codes == NOT_HERE and listed(world[0])[0].groups == []


def test_with_too_few_in_sync_nothing_is_written() -> None:
    world = GroupsWorld(min_insync_replicas="3")
    world.controller.fence(2)
    world.follow_all()
    assert commit(world[0], 7) == NOT_NOW and fetched(world[0]) == [-1]
    assert listed(world[0])[0].groups == []
    assert world[0].partition().log.end_offset == 0


def test_a_commit_that_is_too_large_for_the_log_says_so() -> None:
    world = GroupsWorld(ALONE)
    world.controller.configure("max.message.bytes", "1000")
    world.follow_all()
    assert commit(world[0], 7, metadata="x" * 2_000) == [ErrorCode.INVALID_COMMIT_OFFSET_SIZE]
    assert fetched(world[0]) == [-1]
    assert commit(world[0], 7) == NONE


def test_offsets_of_deleted_topics_go_however_many_they_are() -> None:
    """More tombstones than a batch may hold were refused, and never tried again."""
    world = GroupsWorld(ALONE)
    for number in range(60):
        commit(world[0], 7, group_id=f"group-{number}")
    world.controller.configure("max.message.bytes", "1000")
    world.delete("orders")
    world.follow_all()
    shard = world[0].broker.coordination._hosted[0].shard
    assert not any(shard._offsets.places_of(f"group-{number}") for number in range(60))
    world.lead(0)
    world[0].kill()
    world.restart(0)
    world.settle_all()
    world.create("orders")
    assert fetched(world[0], group_id="group-7") == [-1]


def test_a_topic_of_the_same_name_does_not_inherit() -> None:
    world = GroupsWorld(ALONE)
    commit(world[0], 7)
    world.delete("orders")
    world.create("orders")
    assert fetched(world[0]) == [-1]


def test_members_join_and_sync_and_are_missed() -> None:
    world = GroupsWorld()
    first, second = joined(world[0]), joined(world[0])
    world.settle_all()
    world.pass_ms(3_000)
    assert not first
    world.pass_ms(3_000)
    assert first[0].leader == second[0].leader == first[0].member_id
    waiting, own = synced(world[0], second[0]), synced(world[0], first[0])
    assert not waiting and not own, "the assignment is not safe yet"
    world.settle_all()
    assert waiting[0].error_code == own[0].error_code == 0
    assert beaten(world[0], first[0]) == NONE
    world.pass_ms(9_999)
    assert beaten(world[0], first[0]) == NONE
    world.pass_ms(1)
    assert beaten(world[0], first[0]) == [ErrorCode.REBALANCE_IN_PROGRESS]
    assert beaten(world[0], second[0]) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_member_survives_a_failover() -> None:
    world = GroupsWorld()
    joining = joined(world[0])
    world.settle_all()
    world.pass_ms(3_000)
    synced(world[0], joining[0])
    world.settle_all()
    world.take_over(2)
    assert beaten(world[0], joining[0]) == NOT_HERE
    assert beaten(world[2], joining[0]) == NONE


def test_a_group_belongs_to_the_partition_that_java_would_say() -> None:
    assert [_java_hash(text) for text in ("", "a", "readers", "polygenelubricants")] == [
        0,
        97,
        sum(ord(letter) * 31**place for place, letter in enumerate(reversed("readers"))) & 0xFFFFFFFF,
        0x80000000,
    ]
    assert _java_hash("𝄞") == 0xD834 * 31 + 0xDD1E
    world = GroupsWorld(partitions=5)
    assert world[0].broker.coordination.offsets_topic.partition_of("polygenelubricants") == 0, "the sign is not counted"
    assert {world[0].broker.coordination.offsets_topic.partition_of(f"group-{number}") for number in range(50)} == set(
        range(5)
    )


def test_where_the_coordinator_is() -> None:
    world = GroupsWorld()
    world.lead(2)
    world.follow_all()
    answers: list[Any] = []
    for version in (3, 4):
        request = FindCoordinatorRequest(key=GROUP, coordinator_keys=[GROUP])
        world[1].ask(find_coordinator.handle, request, version, answers.append)
    for found in (answers[0], answers[1].coordinators[0]):
        assert (found.error_code, found.node_id, found.port) == (0, 2, 9094)


def test_a_coordinator_whose_topic_is_deleted_is_none() -> None:
    world = GroupsWorld(ALONE)
    joining = joined(world[0])
    world.delete(CONSUMER_OFFSETS)
    world.follow_all()
    assert joining[0].error_code == ErrorCode.NOT_COORDINATOR
    assert commit(world[0], 7) == NOT_HERE


def test_timers_that_are_due_while_nobody_is_heard_keep_nobody_awake() -> None:
    """The node woke again and again, and the time stood still (seed 41500002)."""
    world = GroupsWorld(ALONE)
    joined(world[0])
    world.settle_all()
    coordination = world[0].broker.coordination
    coordination.counted_on_until_ms = world.now.monotonic_ms
    world.advance(600_000)
    coordination.tick(world.now)
    assert coordination.next_due_ms is not None and coordination.next_due_ms > world.now.monotonic_ms


def test_nobodys_session_ends_while_nobody_is_heard() -> None:
    """The controller is away for longer than their sessions: they could not be heard, and are not given up for that."""
    world = GroupsWorld()
    joining = joined(world[0])
    world.settle_all()
    world.pass_ms(3_000)
    synced(world[0], joining[0])
    world.settle_all()
    groups = world[0].broker.coordination
    groups.counted_on_until_ms = world.now.monotonic_ms
    world.pass_ms(60_000)
    groups.counted_on_until_ms = world.now.monotonic_ms + 60_000
    world.pass_ms(200)
    assert beaten(world[0], joining[0]) == NONE
    world.pass_ms(10_000)
    world.settle_all()
    assert beaten(world[0], joining[0]) == [ErrorCode.UNKNOWN_MEMBER_ID], "from then on its session runs again"


@pytest.mark.parametrize("name", ["", "a", "readers", "ä€\U0001f600", "x" * 40_000, "\ud800"])
def test_a_name_is_hashed_as_java_does_however_long(name: str) -> None:
    naive = 0
    raw = name.encode("utf-16-be", "surrogatepass")
    for high, low in zip(raw[::2], raw[1::2], strict=True):
        naive = (31 * naive + (high << 8 | low)) % 2**32
    assert _java_hash(name) == naive


def test_what_nobody_waits_for_and_cannot_be_written_is_told() -> None:
    world = GroupsWorld(ALONE)
    joining = joined(world[0])
    world.pass_ms(3_000)
    synced(world[0], joining[0])
    told: list[object] = []
    world[0].broker.coordination._tell = told.append
    world[0].partition().log.settings = replace(world[0].partition().log.settings, max_message_bytes=1)
    world.pass_ms(10_000)
    assert any(isinstance(fact, GroupsNotWritten) for fact in told), told
