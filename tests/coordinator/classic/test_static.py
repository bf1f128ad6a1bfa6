"""Static members: they come back under another member id, whoever had the instance id before is fenced."""

from typing import Any

import pytest

from klamm.coordinator.records import GroupMetadataValue
from klamm.coordinator.wishes import LeavingMember
from klamm.errors import ErrorCode
from tests.coordinator.classic.bench import FIRST_MS, REBALANCE_MS, SESSION_MS, Bench

FENCED = ErrorCode.FENCED_INSTANCE_ID
SKIPS: dict[str, Any] = {"can_skip_assignment": True}


def test_a_static_member_needs_no_id_first_and_has_its_name_in_it() -> None:
    bench = Bench()
    ticket = bench.join(instance_id="machine", must_know_its_id=True)
    bench.pass_ms(FIRST_MS)
    assert bench.joined(ticket).member_id.startswith("machine-")
    assert bench.joined(ticket).members[0].instance_id == "machine"


def test_a_follower_returns_and_nobody_notices() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, instances=True)
    back = bench.joined(bench.join(instance_id="machine-1", **SKIPS))
    assert back.generation == 1 and back.member_id != follower.member_id
    assert back.leader == leader.member_id and not back.members and not back.skip_assignment
    assert bench.assignment(bench.sync(back, instance_id="machine-1")) == b"to 1"
    assert bench.beat(leader.member_id, 1, "machine-0") == ErrorCode.NONE
    value = bench.log[-1].value
    assert isinstance(value, GroupMetadataValue)
    assert {each.member_id: each.assignment for each in value.members} == {
        leader.member_id: b"to 0",
        back.member_id: b"to 1",
    }


def test_a_leader_that_understands_is_told_not_to_assign() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, instances=True)
    back = bench.joined(bench.join(instance_id="machine-0", **SKIPS))
    assert back.skip_assignment and back.leader == back.member_id != leader.member_id
    assert {each.member_id for each in back.members} == {back.member_id, follower.member_id}
    assert bench.state == "Stable"


def test_a_leader_that_does_not_understand_is_not_told_that_it_leads() -> None:
    bench = Bench()
    leader, _ = bench.stable(2, instances=True)
    back = bench.joined(bench.join(instance_id="machine-0"))
    assert back.leader == leader.member_id != back.member_id and not back.members and not back.skip_assignment
    assert bench.assignment(bench.sync(back, instance_id="machine-0")) == b"to 0"


def test_another_subscription_is_written_down_but_disturbs_nobody() -> None:
    bench = Bench()
    bench.stable(2, instances=True)
    assert bench.joined(bench.join(instance_id="machine-1", protocols=[("range", b"more")])).generation == 1
    assert bench.described().state == "Stable"
    assert [each.metadata for each in bench.described().members] == [b"r", b"more"]
    assert bench.described(bench.replayed()) == bench.described()


def test_unless_another_protocol_follows_from_it() -> None:
    bench = Bench()
    ticket = bench.join(instance_id="only", protocols=[("a", b""), ("b", b"")])
    bench.pass_ms(FIRST_MS)
    bench.sync(bench.joined(ticket))
    back = bench.join(instance_id="only", protocols=[("b", b""), ("a", b"")])
    assert bench.joined(back).generation == 2 and bench.joined(back).protocol_name == "b"
    assert bench.code(bench.join(instance_id="only", protocols=[("c", b"")])) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_whoever_had_the_instance_id_is_fenced_everywhere() -> None:
    bench = Bench()
    _, old = bench.stable(2, instances=True)
    bench.join(instance_id="machine-1")
    assert bench.beat(old.member_id, 1, "machine-1") == FENCED
    assert bench.code(bench.sync(old, instance_id="machine-1")) == FENCED
    assert bench.code(bench.join(old.member_id, "machine-1")) == FENCED
    assert bench.commit(member_id=old.member_id, generation=1, instance_id="machine-1") == FENCED
    assert bench.leave(LeavingMember(old.member_id, "machine-1")) == [FENCED]
    assert bench.beat(old.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID, "who says no instance id is just unknown"
    assert bench.state == "Stable"


def test_a_return_while_members_join() -> None:
    bench = Bench()
    leader, _ = bench.stable(2, instances=True)
    newcomer = bench.join()
    bench.join(leader.member_id, "machine-0")
    back = bench.join(instance_id="machine-1")
    assert bench.joined(newcomer).generation == bench.joined(back).generation == 2


def test_a_return_of_one_that_waits_already_fences_the_waiting() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, instances=True)
    waiting = bench.join(leader.member_id, "machine-0")
    back = bench.join(instance_id="machine-0")
    assert bench.code(waiting) == FENCED and bench.waits(back)
    bench.join(follower.member_id, "machine-1")
    assert bench.joined(back).leader == bench.joined(back).member_id, "it leads as before"


def test_a_return_while_the_leader_assigns_begins_anew() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2, instances=True)
    waiting = bench.sync(follower, instance_id="machine-1")
    back = bench.join(instance_id="machine-1")
    assert bench.code(waiting) == FENCED and bench.waits(back)
    again = bench.join(leader.member_id, "machine-0")
    assert bench.joined(back).generation == bench.joined(again).generation == 2
    bench.check_parked()


def test_a_return_during_the_first_delay() -> None:
    bench = Bench()
    first = bench.join(instance_id="machine")
    back = bench.join(instance_id="machine")
    assert bench.code(first) == FENCED
    bench.pass_ms(FIRST_MS)
    assert bench.joined(back).generation == 1 and len(bench.joined(back).members) == 1


def test_a_return_has_a_whole_session_and_the_former_one_ends_nothing() -> None:
    bench = Bench()
    bench.stable(1, instances=True)
    bench.pass_ms(SESSION_MS - 1)
    back = bench.joined(bench.join(instance_id="machine-0"))
    bench.pass_ms(SESSION_MS - 1)
    assert bench.beat(back.member_id, 1, "machine-0") == ErrorCode.NONE


def test_who_returns_before_it_was_ever_answered_waits_like_anybody() -> None:
    """It was taken for new, and put out after a session in which it could not speak."""
    bench = Bench()
    [old] = bench.stable(1)
    bench.join(instance_id="machine")
    back = bench.join(instance_id="machine")
    for _ in range(3):
        bench.pass_ms(SESSION_MS - 1)
        assert bench.beat(old.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.waits(back)
    bench.join(old.member_id)
    assert bench.joined(back).generation == 2


def test_who_returns_before_it_synced_is_not_waited_for_under_its_old_id() -> None:
    """The old id was never crossed out, so the others had to join again when its time was over."""
    bench = Bench()
    leader, _ = bench.gathered(2, instances=True, session_ms=2 * REBALANCE_MS)
    bench.sync(leader, instance_id="machine-0")
    back = bench.joined(bench.join(instance_id="machine-1", session_ms=2 * REBALANCE_MS))
    bench.sync(back, instance_id="machine-1")
    bench.pass_ms(REBALANCE_MS)
    assert bench.state == "Stable"


def test_a_static_member_is_waited_for_until_its_session_ends() -> None:
    bench = Bench()
    first, second = bench.stable(2, instances=True, rebalance_ms=5_000, session_ms=20_000)
    bench.leave(LeavingMember(first.member_id, "machine-0"))
    bench.pass_ms(19_999)
    assert bench.state == "PreparingRebalance" and len(bench.described().members) == 1
    assert bench.joined(bench.join(second.member_id, "machine-1")).generation == 2


def test_a_static_member_that_does_not_join_in_time_stays_in_but_does_not_lead() -> None:
    bench = Bench()
    first, second = bench.stable(2, instances=True, rebalance_ms=5_000, session_ms=60_000)
    again = bench.join(second.member_id, "machine-1", protocols=[("range", b"new")], rebalance_ms=5_000)
    bench.pass_ms(5_000)
    joined = bench.joined(again)
    assert joined.leader == second.member_id
    assert {each.member_id for each in joined.members} == {first.member_id, second.member_id}


def test_its_session_ends_like_anybodys() -> None:
    bench = Bench()
    first, second = bench.stable(2, instances=True)
    bench.pass_ms(SESSION_MS - 1)
    bench.beat(first.member_id, 1, "machine-0")
    bench.pass_ms(1)
    assert bench.beat(second.member_id, 1, "machine-1") == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat(first.member_id, 1, "machine-0") == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("says_its_id", [True, False])
def test_leaving_by_instance_id(says_its_id: bool) -> None:
    bench = Bench()
    first, second = bench.stable(2, instances=True)
    going = LeavingMember(second.member_id if says_its_id else "", "machine-1")
    assert bench.leave(LeavingMember("", "machine-9"), going, LeavingMember(first.member_id, "machine-1")) == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert [each.instance_id for each in bench.described().members] == ["machine-0"]
    assert bench.leave(LeavingMember(second.member_id, "machine-0")) == [FENCED]


def test_a_return_finds_room_where_newcomers_do_not() -> None:
    bench = Bench(max_size=2)
    bench.stable(2, instances=True)
    assert bench.code(bench.join(instance_id="machine-2")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.joined(bench.join(instance_id="machine-1")).generation == 1


def test_a_failover_knows_who_is_who() -> None:
    bench = Bench()
    _, old = bench.stable(2, instances=True)
    back = bench.joined(bench.join(instance_id="machine-1"))
    bench.fail_over()
    assert bench.beat(old.member_id, 1, "machine-1") == FENCED
    assert bench.beat(back.member_id, 1, "machine-1") == ErrorCode.NONE
