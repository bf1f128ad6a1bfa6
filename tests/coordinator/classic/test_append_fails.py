"""The log takes nothing: whoever is in the verdict hears so, nothing is replayed, and the group goes on from there."""

from klamm.coordinator.wishes import LeavingMember
from klamm.errors import ErrorCode
from tests.coordinator.classic.bench import FIRST_MS, SESSION_MS, Bench

FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_an_assignment_that_was_not_written_is_said_again() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    waiting = bench.sync(follower)
    bench.append_fails = True
    assert bench.code(bench.sync(leader, {follower.member_id: b"x"})) == bench.code(waiting) == FAILED
    assert bench.state == "CompletingRebalance" and len(bench.log) == 1, "only that there is such a group"
    bench.append_fails = False
    bench.check_parked()
    assert [bench.joined(bench.join(each.member_id)) for each in (leader, follower)] == [leader, follower]
    waiting = bench.sync(follower)
    bench.sync(leader, {follower.member_id: b"y"})
    assert bench.assignment(waiting) == b"y"


def test_whoever_dies_after_that_is_missed() -> None:
    """Who had heard of the failure still counted as waiting: its session never ended, and others waited for it."""
    bench = Bench()
    leader, follower = bench.gathered(2)
    bench.sync(follower)
    bench.append_fails = True
    bench.sync(leader)
    bench.append_fails = False
    waiting = bench.sync(follower)
    bench.pass_ms(SESSION_MS)
    assert bench.code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS, "the leader is dead"
    assert bench.joined(bench.join(follower.member_id)).leader == follower.member_id


def test_the_last_one_leaves_and_it_is_not_written() -> None:
    bench = Bench()
    [member] = bench.stable(1)
    bench.append_fails = True
    assert bench.leave(LeavingMember(member.member_id)) == [FAILED]
    bench.append_fails = False
    assert bench.leave(LeavingMember(member.member_id)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    ticket = bench.join()
    bench.pass_ms(FIRST_MS)
    joined = bench.joined(ticket)
    assert joined.generation == 3
    assert bench.assignment(bench.sync(joined, {joined.member_id: b"all"})) == b"all"
    assert bench.described(bench.replayed()) == bench.described()


def test_a_session_ends_and_it_is_not_written() -> None:
    bench = Bench()
    bench.stable(1)
    bench.append_fails = True
    bench.pass_ms(SESSION_MS)
    bench.append_fails = False
    assert bench.state == "Empty"
    bench.fail_over()
    assert bench.state == "Stable", "the next coordinator gives it another session"
    bench.pass_ms(SESSION_MS)
    assert bench.state == "Empty" and bench.log[-1].value.members == []  # type: ignore[union-attr]


def test_a_static_member_returns_and_it_is_not_written() -> None:
    bench = Bench()
    _, old = bench.stable(2, instances=True)
    bench.append_fails = True
    assert bench.code(bench.join(instance_id="machine-1")) == FAILED
    bench.append_fails = False
    back = bench.joined(bench.join(instance_id="machine-1"))
    assert bench.assignment(bench.sync(back, instance_id="machine-1")) == b"to 1"
    assert bench.beat(old.member_id, 1, "machine-1") == ErrorCode.FENCED_INSTANCE_ID
    assert bench.described(bench.replayed()) == bench.described()


def test_a_commit_that_was_not_written_is_not_there() -> None:
    bench = Bench()
    bench.append_fails = True
    assert bench.commit() == FAILED
    bench.append_fails = False
    assert bench.offsets() == {}
