"""The first half of a rebalance: who is waited for and how long, who leads, what is agreed on."""

from typing import Any

import pytest

from klamm.coordinator.wishes import JoinedMember, LeavingMember
from klamm.errors import ErrorCode
from tests.coordinator.classic.bench import FIRST_MS, GROUP, REBALANCE_MS, SESSION_MS, Bench

MUST_KNOW: dict[str, Any] = {"must_know_its_id": True}


def test_the_first_member_waits_a_little_and_leads() -> None:
    bench = Bench()
    ticket = bench.join()
    bench.pass_ms(FIRST_MS - 1)
    assert bench.waits(ticket) and bench.state == "PreparingRebalance"
    bench.pass_ms(1)
    joined = bench.joined(ticket)
    assert joined.generation == 1 and joined.leader == joined.member_id and joined.member_id.startswith("client-")
    assert joined.members == [JoinedMember(joined.member_id, None, b"r")]
    assert (joined.protocol_type, joined.protocol_name, joined.skip_assignment) == ("consumer", "range", False)
    assert bench.state == "CompletingRebalance" and len(bench.log) == 1, "only that there is such a group"


def test_whoever_comes_in_that_time_prolongs_it_by_another() -> None:
    bench = Bench()
    first = bench.join()
    bench.pass_ms(FIRST_MS - 1)
    second = bench.join()
    bench.pass_ms(FIRST_MS)
    assert bench.waits(first) and bench.waits(second), "it began anew when the first was over"
    bench.pass_ms(1)
    assert bench.joined(first).generation == bench.joined(second).generation == 1
    assert bench.joined(second).members == () and bench.joined(second).leader == bench.joined(first).member_id
    assert {each.member_id for each in bench.joined(first).members} == {
        bench.joined(ticket).member_id for ticket in (first, second)
    }


def test_but_not_beyond_the_rebalance_timeout_of_the_first() -> None:
    bench = Bench()
    tickets = [bench.join(rebalance_ms=7_000)]
    for _ in range(2):
        bench.pass_ms(2_900)
        tickets.append(bench.join(rebalance_ms=7_000))
    bench.pass_ms(1_199)
    assert all(bench.waits(ticket) for ticket in tickets)
    bench.pass_ms(1)
    assert [bench.joined(ticket).generation for ticket in tickets] == [1, 1, 1]


def test_no_delay_means_at_the_next_tick() -> None:
    bench = Bench(initial_rebalance_delay_ms=0)
    tickets = [bench.join(), bench.join()]
    bench.tick()
    assert [bench.joined(ticket).generation for ticket in tickets] == [1, 1]


def test_a_new_member_is_first_given_its_id() -> None:
    bench = Bench()
    ticket = bench.join(**MUST_KNOW)
    given = bench.replies[ticket]
    assert given.error == ErrorCode.MEMBER_ID_REQUIRED and given.generation == -1 and given.protocol_name is None
    assert bench.state == "Empty" and bench.described().protocol_type == ""
    assert bench.beat(given.member_id, -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.code(bench.sync(given, generation=0)) == ErrorCode.UNKNOWN_MEMBER_ID
    again = bench.join(given.member_id, **MUST_KNOW)
    bench.pass_ms(FIRST_MS)
    assert bench.joined(again).member_id == given.member_id


def test_an_id_that_nobody_gave_is_unknown() -> None:
    bench = Bench()
    assert bench.code(bench.join("made-up", **MUST_KNOW)) == ErrorCode.UNKNOWN_MEMBER_ID
    bench.gathered(1)
    assert bench.code(bench.join("made-up", **MUST_KNOW)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_given_id_is_forgotten_when_it_is_not_used_within_the_session() -> None:
    bench = Bench()
    given = bench.replies[bench.join(**MUST_KNOW)]
    bench.pass_ms(SESSION_MS)
    assert bench.code(bench.join(given.member_id, **MUST_KNOW)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_given_id_may_be_given_back() -> None:
    bench = Bench()
    given = bench.replies[bench.join(**MUST_KNOW)]
    assert bench.leave(LeavingMember(given.member_id)) == [ErrorCode.NONE]
    assert bench.leave(LeavingMember(given.member_id)) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_rebalance_waits_for_those_who_were_given_an_id() -> None:
    bench = Bench()
    [leader] = bench.stable(1)
    given = bench.replies[bench.join(**MUST_KNOW)]
    ticket = bench.join(leader.member_id)
    assert bench.waits(ticket), "the newcomer is about to join"
    newcomer = bench.join(given.member_id, **MUST_KNOW)
    assert bench.joined(ticket).generation == bench.joined(newcomer).generation == 2


@pytest.mark.parametrize("given_back", [True, False])
def test_and_goes_on_when_they_give_up(given_back: bool) -> None:
    bench = Bench()
    [leader] = bench.stable(1)
    given = bench.replies[bench.join(session_ms=6_000, **MUST_KNOW)]
    ticket = bench.join(leader.member_id)
    if given_back:
        bench.leave(LeavingMember(given.member_id))
    else:
        bench.pass_ms(5_999)
        assert bench.waits(ticket)
        bench.pass_ms(1)
    assert bench.joined(ticket).generation == 2


def test_a_later_rebalance_waits_for_everybody_and_no_longer() -> None:
    bench = Bench()
    first, second = bench.stable(2)
    newcomer = bench.join()
    assert bench.state == "PreparingRebalance"
    assert bench.beat(first.member_id, 1) == bench.beat(second.member_id, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    tickets = [bench.join(second.member_id), bench.join(first.member_id)]
    assert {bench.joined(ticket).generation for ticket in [newcomer, *tickets]} == {2}
    assert {bench.joined(ticket).leader for ticket in [newcomer, *tickets]} == {first.member_id}, "it leads on"


def test_who_does_not_join_within_the_rebalance_timeout_is_out() -> None:
    bench = Bench()
    first, second = bench.stable(2, session_ms=REBALANCE_MS * 2)
    newcomer = bench.join()
    again = bench.join(second.member_id)
    bench.pass_ms(REBALANCE_MS - 1)
    assert bench.waits(newcomer)
    bench.pass_ms(1)
    assert bench.joined(again).generation == 2 and bench.joined(newcomer).leader == second.member_id
    assert bench.beat(first.member_id, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_longest_rebalance_timeout_counts() -> None:
    bench = Bench()
    bench.stable(1, session_ms=200_000, rebalance_ms=90_000)
    newcomer = bench.join(rebalance_ms=1_000)
    bench.pass_ms(89_999)
    assert bench.waits(newcomer)
    bench.pass_ms(1)
    assert bench.joined(newcomer).generation == 2


def test_the_protocol_is_the_one_that_most_like_best_among_those_all_know() -> None:
    bench = Bench()
    a, b, c, d = (("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4"))
    tickets = [bench.join(protocols=[c, a, b]), bench.join(protocols=[d, b, a]), bench.join(protocols=[b, a])]
    bench.pass_ms(3 * FIRST_MS)
    assert {bench.joined(ticket).protocol_name for ticket in tickets} == {"b"}
    assert [each.metadata for each in bench.joined(tickets[0]).members] == [b"2", b"2", b"2"]


def test_who_shares_no_protocol_or_has_another_type_cannot_join() -> None:
    bench = Bench()
    assert bench.code(bench.join(protocols=[])) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.code(bench.join(protocol_type="")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.stable(1)
    assert bench.code(bench.join(protocols=[("other", b"")])) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.code(bench.join(protocol_type="connect")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.state == "Stable"


def test_an_empty_group_may_become_one_of_another_type() -> None:
    bench = Bench()
    [member] = bench.stable(1)
    bench.leave(LeavingMember(member.member_id))
    ticket = bench.join(protocol_type="connect", protocols=[("sessioned", b"")])
    bench.pass_ms(FIRST_MS)
    assert (bench.joined(ticket).protocol_type, bench.joined(ticket).generation) == ("connect", 3)


def test_session_timeouts_are_within_bounds_and_groups_have_names() -> None:
    bench = Bench(min_session_ms=6_000, max_session_ms=7_000)
    for session_ms in (5_999, 7_001):
        assert bench.code(bench.join(session_ms=session_ms)) == ErrorCode.INVALID_SESSION_TIMEOUT
    for session_ms in (6_000, 7_000):
        assert bench.waits(bench.join(session_ms=session_ms))


def test_a_lost_answer_is_given_again_while_the_leader_assigns() -> None:
    bench = Bench()
    leader, follower = bench.gathered(2)
    for member in (leader, follower):
        assert bench.joined(bench.join(member.member_id)) == member
    assert bench.state == "CompletingRebalance"
    changed = bench.join(follower.member_id, protocols=[("range", b"other")])
    assert bench.waits(changed) and bench.state == "PreparingRebalance"


def test_in_a_stable_group_a_follower_hears_the_same_and_the_leader_begins_anew() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    assert bench.joined(bench.join(follower.member_id)) == follower
    assert bench.state == "Stable"
    assert bench.waits(bench.join(leader.member_id)) and bench.state == "PreparingRebalance"


def test_a_follower_that_says_something_else_begins_anew() -> None:
    bench = Bench()
    leader, follower = bench.stable(2)
    ticket = bench.join(follower.member_id, protocols=[("range", b"other topics")])
    again = bench.join(leader.member_id)
    assert bench.joined(ticket).generation == 2
    assert [each.metadata for each in bench.joined(again).members] == [b"r", b"other topics"]


def test_who_joins_twice_is_answered_in_the_second() -> None:
    bench = Bench()
    leader, _ = bench.stable(2)
    first = bench.join(leader.member_id)
    second = bench.join(leader.member_id)
    assert bench.code(first) == ErrorCode.UNKNOWN_MEMBER_ID and bench.waits(second)
    bench.check_parked()


def test_no_more_than_the_group_has_room_for() -> None:
    bench = Bench(max_size=2)
    leader, _ = bench.stable(2)
    assert bench.code(bench.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.state == "Stable"
    ticket = bench.join(leader.member_id)
    assert bench.waits(ticket)
    assert bench.waits(bench.join()), "those who joined count, and a place is free"
    assert bench.code(bench.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.waits(bench.join(leader.member_id)), "it is in already"


def test_a_group_that_is_refused_its_first_member_does_not_come_into_being() -> None:
    bench = Bench()
    bench.join(protocols=[])
    assert GROUP not in bench.shard._groups and not bench.log


def test_a_member_id_fits_wherever_it_is_written() -> None:
    """Ids and names have at most 32,767 bytes on the wire, and an id begins with the name of its client."""
    bench = Bench()
    ticket = bench.join(instance_id="x" * 32_767)
    bench.pass_ms(FIRST_MS)
    member = bench.joined(ticket)
    assert bench.assignment(bench.sync(member, {member.member_id: b"all"})) == b"all"
