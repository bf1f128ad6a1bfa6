"""The second half of a rebalance: the leader assigns, everybody hears their part, and the log has it."""

from klamm.coordinator.records import GroupMetadataValue
from klamm.errors import ErrorCode
from tests.coordinator.classic.bench import REBALANCE_MS, SESSION_MS, Bench


def test_who_syncs_before_the_leader_waits_for_it_and_who_comes_after_does_not() -> None:
    bench = Bench()
    leader, second, third = bench.gathered(3)
    early = bench.sync(second)
    assert bench.waits(early)
    own = bench.sync(leader, {leader.member_id: b"a", second.member_id: b"b", third.member_id: b"c"})
    late = bench.sync(third)
    assert [bench.assignment(ticket) for ticket in (own, early, late)] == [b"a", b"b", b"c"]
    reply = bench.replies[early]
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert bench.state == "Stable"


def test_the_log_has_what_it_came_to() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    [_, record] = bench.log
    value = record.value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.leader, value.protocol, value.protocol_type) == (
        1,
        leader.member_id,
        "range",
        "consumer",
    )
    assert [(each.member_id, each.assignment, each.subscription) for each in value.members] == [
        (leader.member_id, b"to 0", b"r"),
        (follower.member_id, b"to 1", b"r"),
    ]
    assert [(each.session_timeout, each.rebalance_timeout) for each in value.members] == [
        (SESSION_MS, REBALANCE_MS),
        (SESSION_MS, REBALANCE_MS),
    ]
    assert value.current_state_timestamp == bench.now.wall_ms


def test_a_lost_answer_is_given_again() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    for _ in range(2):
        assert bench.assignment(bench.sync(follower)) == b"to 1"
        assert bench.assignment(bench.sync(leader, {leader.member_id: b"else"})) == b"to 0", "it was said already"


def test_who_syncs_twice_is_answered_in_the_second() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    first = bench.sync(follower)
    second = bench.sync(follower)
    assert bench.code(first) == ErrorCode.UNKNOWN_MEMBER_ID
    bench.sync(leader, {follower.member_id: b"b"})
    assert bench.assignment(second) == b"b"


def test_whom_the_leader_leaves_out_has_nothing_to_do() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    ticket = bench.sync(follower)
    assert bench.assignment(bench.sync(leader, {"somebody else": b"x"})) == b""
    assert bench.assignment(ticket) == b""
    assert [member.assignment for member in bench.described().members] == [b"", b""]


def test_what_is_wrong_with_a_sync() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    assert bench.code(bench.sync(follower, generation=0)) == ErrorCode.ILLEGAL_GENERATION
    assert bench.code(bench.sync(follower, generation=2)) == ErrorCode.ILLEGAL_GENERATION
    for protocol in (("connect", None), (None, "sticky"), ("connect", "range")):
        assert bench.code(bench.sync(follower, protocol=protocol)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.waits(bench.sync(follower, protocol=("consumer", "range")))
    assert bench.code(bench.sync(leader, instance_id="machine")) == ErrorCode.UNKNOWN_MEMBER_ID
    follower.member_id = "somebody"
    assert bench.code(bench.sync(follower)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_syncs_while_others_join_has_to_join() -> None:
    bench = Bench()
    leader, _ = bench.stable(2)
    bench.join()
    assert bench.code(bench.sync(leader)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_releases_those_who_wait_for_the_leader() -> None:
    bench = Bench()
    _, follower = bench.gathered(2)
    waiting = bench.sync(follower)
    newcomer = bench.join()
    assert bench.code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS and bench.waits(newcomer)
    bench.check_parked()


def test_who_joined_and_never_syncs_is_out_after_the_rebalance_timeout() -> None:
    bench = Bench()
    leader, lazy = bench.gathered(2, session_ms=REBALANCE_MS * 2)
    began_ms = bench.passed_ms - 3_000
    bench.sync(leader, {lazy.member_id: b"x"})
    assert bench.state == "Stable"
    bench.pass_ms(began_ms + REBALANCE_MS - bench.passed_ms - 1)
    assert bench.beat(lazy.member_id, 1) == ErrorCode.NONE
    bench.pass_ms(1)
    assert bench.beat(lazy.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.beat(leader.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_never_syncs_is_out_and_those_who_wait_join_again() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2, session_ms=REBALANCE_MS * 2)
    waiting = bench.sync(follower)
    bench.pass_ms(REBALANCE_MS)
    assert bench.code(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.beat(leader.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    again = bench.joined(bench.join(follower.member_id))
    assert again.generation == 2 and again.leader == follower.member_id


def test_when_all_have_synced_nobody_is_put_out() -> None:
    bench = Bench()
    leader, follower = bench.stable(2, session_ms=REBALANCE_MS * 2)
    bench.pass_ms(REBALANCE_MS)
    assert bench.state == "Stable"
    assert bench.beat(leader.member_id, 1) == bench.beat(follower.member_id, 1) == ErrorCode.NONE
