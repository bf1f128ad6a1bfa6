"""Heartbeats, sessions, leaving, and who may commit offsets when."""

from typing import Any

import pytest

from klamm.coordinator.groups.classic import NEW_MEMBERS_PATIENCE_MS
from klamm.coordinator.records import GroupMetadataKey, GroupMetadataValue
from klamm.coordinator.wishes import LeavingMember
from klamm.errors import ErrorCode
from tests.coordinator.classic.bench import FIRST_MS, GROUP, REBALANCE_MS, SESSION_MS, Bench


def test_a_heartbeat_says_whether_all_is_well() -> None:
    bench = Bench()
    assert bench.beat("anybody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    leader, _ = bench.gathered(2)
    assert bench.beat(leader.member_id, 1) == ErrorCode.NONE, "also while the leader assigns"
    assert bench.beat(leader.member_id, 0) == ErrorCode.ILLEGAL_GENERATION
    assert bench.beat(leader.member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert bench.beat(leader.member_id, 1, instance_id="machine") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat("anybody", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_groups_have_names() -> None:
    bench = Bench()
    for decide in (bench.shard.beat, bench.shard.sync, bench.shard.leave, bench.shard.join):
        wish = type("Nameless", (), {"group_id": ""})()
        assert bench.code(bench.ask(decide, wish)) == ErrorCode.INVALID_GROUP_ID


def test_who_is_silent_for_a_session_is_out_and_the_others_join_again() -> None:
    bench = Bench()
    leader, silent = bench.stable(2)
    bench.pass_ms(SESSION_MS - 1)
    assert bench.beat(leader.member_id, 1) == ErrorCode.NONE
    bench.pass_ms(1)
    assert bench.beat(leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.beat(silent.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.joined(bench.join(leader.member_id)).generation == 2


@pytest.mark.parametrize("sign", ["beat", "sync", "commit"])
def test_signs_of_life(sign: str) -> None:
    bench = Bench()
    [member] = bench.stable(1)
    for _ in range(3):
        bench.pass_ms(SESSION_MS - 1)
        if sign == "beat":
            assert bench.beat(member.member_id, 1) == ErrorCode.NONE
        elif sign == "sync":
            assert bench.assignment(bench.sync(member)) == b"to 0"
        else:
            assert bench.commit(member_id=member.member_id, generation=1) == [ErrorCode.NONE]
    assert bench.state == "Stable"
    bench.pass_ms(SESSION_MS)
    assert bench.state == "Empty"


def test_who_waits_for_us_has_no_session_to_lose() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    bench.join(first.member_id)
    for _ in range(4):
        bench.pass_ms(SESSION_MS - 1)
        assert bench.beat(second.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = bench.join(second.member_id)
    assert bench.joined(again).generation == 2 and bench.joined(again).leader == first.member_id
    bench.sync(bench.joined(again))
    bench.pass_ms(SESSION_MS)
    assert bench.beat(second.member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS, "the leader was silent then"


def test_a_session_begins_anew_with_every_answer() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    waiting = bench.join(first.member_id)
    bench.pass_ms(SESSION_MS - 1)
    bench.join(second.member_id)
    bench.pass_ms(SESSION_MS - 1)
    assert bench.beat(first.member_id, 2) == ErrorCode.NONE
    assert bench.joined(waiting).generation == 2


def test_a_new_member_that_waits_for_too_long_is_out() -> None:
    """It does not know its id and cannot speak, so it has more time, but not for ever: it may be gone."""
    bench = Bench()
    [old] = bench.stable(1, rebalance_ms=2 * NEW_MEMBERS_PATIENCE_MS)
    newcomer = bench.join()
    for _ in range(int(NEW_MEMBERS_PATIENCE_MS / 5_000)):
        assert bench.waits(newcomer)
        assert bench.beat(old.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        bench.pass_ms(5_000)
    assert bench.code(newcomer) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.joined(bench.join(old.member_id)).generation == 2


def test_everybody_leaves_and_the_log_says_so() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    assert bench.leave(LeavingMember(first.member_id)) == [ErrorCode.NONE]
    assert bench.state == "PreparingRebalance" and len(bench.log) == 2
    assert bench.leave(LeavingMember(second.member_id)) == [ErrorCode.NONE]
    assert bench.state == "Empty" and bench.described().protocol_type == "consumer"
    key, value = bench.log[-1]
    assert key == GroupMetadataKey(GROUP) and isinstance(value, GroupMetadataValue)
    assert (value.generation, value.leader, value.protocol, value.members) == (2, None, None, [])


def test_several_leave_at_once_and_each_hears_its_own() -> None:
    bench = Bench()
    first, second, third = bench.stable(3)
    going = [LeavingMember(first.member_id), LeavingMember("nobody"), LeavingMember(third.member_id, "machine")]
    assert bench.leave(*going) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.joined_after(second, third) == 2
    assert bench.leave() == []


def test_to_leave_in_vain_disturbs_nobody() -> None:
    bench = Bench()
    assert bench.leave(LeavingMember("nobody")) == [ErrorCode.UNKNOWN_MEMBER_ID]
    bench.stable(2)
    assert bench.leave(LeavingMember("nobody"), LeavingMember("")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert bench.state == "Stable"


def test_who_leaves_while_it_waits_hears_so_in_both() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    syncing = bench.sync(follower)
    assert bench.leave(LeavingMember(follower.member_id)) == [ErrorCode.NONE]
    assert bench.code(syncing) == ErrorCode.UNKNOWN_MEMBER_ID
    joining = bench.join(leader.member_id)
    assert bench.joined(joining).generation == 2


def test_the_last_one_leaves_during_the_first_delay() -> None:
    bench = Bench()
    ticket = bench.join()
    member_id = bench.described().members[0].member_id
    assert bench.leave(LeavingMember(member_id)) == [ErrorCode.NONE]
    assert bench.code(ticket) == ErrorCode.UNKNOWN_MEMBER_ID
    later = bench.join()
    bench.pass_ms(2 * FIRST_MS)
    assert bench.joined(later).generation == 1 and bench.joined(later).leader == bench.joined(later).member_id


def test_commits_in_each_state() -> None:
    bench = Bench()
    assert bench.commit(generation=3) == ErrorCode.ILLEGAL_GENERATION, "there is no such group"
    assert bench.commit(generation=3, knows_epochs=True) == ErrorCode.GROUP_ID_NOT_FOUND
    assert bench.commit() == [ErrorCode.NONE] and bench.state == "Empty"
    assert bench.commit(generation=0, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    leader, follower = bench.gathered(2)
    own: dict[str, Any] = {"member_id": follower.member_id}
    assert bench.commit(generation=1, **own) == ErrorCode.REBALANCE_IN_PROGRESS
    bench.sync(leader)
    assert bench.commit(generation=1, **own) == [ErrorCode.NONE]
    assert bench.commit() == ErrorCode.UNKNOWN_MEMBER_ID, "only members commit"
    assert bench.commit(**own) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(generation=2, **own) == ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(generation=1, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit(generation=1, instance_id="x", **own) == ErrorCode.UNKNOWN_MEMBER_ID
    bench.join(leader.member_id)
    assert bench.state == "PreparingRebalance"
    assert bench.commit(generation=1, **own) == [ErrorCode.NONE], "before it joins again a member may"


def test_a_failover_keeps_the_generation_and_gives_everybody_its_time_again() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.pass_ms(SESSION_MS - 1)
    before = bench.described()
    bench.fail_over()
    assert bench.described() == before
    bench.pass_ms(SESSION_MS - 1)
    assert bench.beat(leader.member_id, 1) == ErrorCode.NONE
    assert bench.assignment(bench.sync(follower)) == b"to 1"
    bench.pass_ms(SESSION_MS)
    assert bench.state == "Empty"


def test_a_failover_forgets_the_generation_that_was_not_written() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    tickets = [bench.join(second.member_id, protocols=[("range", b"new")]), bench.join(first.member_id)]
    assert [bench.joined(ticket).generation for ticket in tickets] == [2, 2]
    waiting = bench.sync(bench.joined(tickets[0]))
    bench.fail_over()
    assert bench.code(waiting) == ErrorCode.NOT_COORDINATOR and bench.state == "Stable"
    assert bench.beat(first.member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    again = [bench.join(first.member_id), bench.join(second.member_id)]
    assert [bench.joined(ticket).generation for ticket in again] == [2, 2]


def test_a_group_with_a_static_member_that_allows_no_time_does_not_stop_the_clock() -> None:
    """Its rebalance timeout was set again and again, at once, and the broker did nothing else."""
    bench = Bench()
    bench.stable(2, instances=True)
    for name in ("machine-0", "machine-1"):
        assert bench.joined(bench.join(instance_id=name, rebalance_ms=0)).generation == 1
    assert bench.leave(LeavingMember("", "machine-0")) == [ErrorCode.NONE]
    bench.pass_ms(SESSION_MS)
    assert bench.state == "Empty"
    bench.pass_ms(REBALANCE_MS)
