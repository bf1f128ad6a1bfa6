"""Traps 36 to 38: how a classic group comes together, who leads it, and by which protocol it assigns."""

import time
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from tests.harness.fixtures import StartNode
from tests.harness.groups import SETTINGS, Member, assignment, gathered, settled, subscription, wait_coordinator
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until


@pytest.mark.parametrize("version", range(10))
def test_trap_36_who_has_no_id_is_given_one_and_comes_again_from_version_4_on(
    node: Node, group: str, version: int
) -> None:
    with Member(node.port, group) as member:
        first = member.raw.call("JoinGroup", version, member.join_request())
        assert first.member_id.startswith("raw-"), "the client's id, and something nobody else has"
        if version < 4:
            assert (first.error_code, first.generation_id, first.leader) == (0, 1, first.member_id)
            return
        assert (first.error_code, first.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        assert (first.leader, first.members) == ("", [])
        assert first.protocol_name == (None if version >= 7 else "")
        member.member_id = first.member_id
        again = member.join(version)
        assert (again.error_code, again.generation_id, again.member_id) == (0, 1, first.member_id)


def test_trap_36_an_id_that_nobody_was_given_is_unknown(node: Node, group: str) -> None:
    with Member(node.port, group) as member:
        answer = member.raw.call("JoinGroup", 9, member.join_request(member_id="made-up"))
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "made-up")
    with settled(node.port, group), Member(node.port, group) as member:
        assert member.raw.call("JoinGroup", 9, member.join_request(member_id="x")).error_code == 25


def test_trap_36_who_was_given_an_id_and_has_not_come_again_is_pending(node: Node, raw: Raw, group: str) -> None:
    """Not a member, not described, nobody waits for it; the group that was made for it is empty."""
    with Member(node.port, group) as member:
        member.member_id = member.raw.call("JoinGroup", 9, member.join_request()).member_id
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.sync(generation_id=0).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        (described,) = raw.call("DescribeGroups", 6, DescribeGroupsRequest([group])).groups
        assert (described.error_code, described.group_state, described.members) == (0, "Empty", [])
        assert member.leave() == ErrorCode.NONE, "it may say that it does not come"
        assert member.raw.call("JoinGroup", 9, member.join_request()).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("session_timeout_ms", "code"), [(499, 26), (500, 0), (1_800_000, 0), (1_800_001, 26), (-1, 26)]
)
def test_trap_37_the_session_timeout_has_a_range(node: Node, group: str, session_timeout_ms: int, code: int) -> None:
    with Member(node.port, group) as member:
        answer = member.raw.call("JoinGroup", 3, member.join_request(session_timeout_ms=session_timeout_ms))
        assert (answer.error_code, answer.generation_id) == (code, -1 if code else 1)


def test_trap_37_by_default_six_seconds_to_half_an_hour_and_three_seconds_of_patience(start_node: StartNode) -> None:
    """An empty group waits for others before its first generation, and again when one comes; later it does not."""
    defaults = {name: value for name, value in SETTINGS.items() if name.startswith("offsets.")}
    node = start_node(defaults)
    with Member(node.port, "patient") as member, Member(node.port, "patient") as other:
        wait_coordinator(member.raw, "patient")
        for wrong in (5_999, 1_800_001):
            answer = member.raw.call("JoinGroup", 9, member.join_request(session_timeout_ms=wrong))
            assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        began = time.monotonic()
        member.send_join(session_timeout_ms=6_000)
        other.send_join(session_timeout_ms=6_000)
        first, second = member.heard_join(), other.heard_join()
        assert time.monotonic() - began > 5.5
        assert (first.generation_id, second.generation_id) == (1, 1)
        assert len(first.members) + len(second.members) == 2
        began = time.monotonic()
        leader, follower = (member, other) if first.members else (other, member)
        leader.send_join(protocols={"range": subscription("something-new")})
        wait_until(lambda: follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "they come together again")
        follower.send_join()
        assert (leader.heard_join().generation_id, follower.heard_join().generation_id) == (2, 2)
        assert time.monotonic() - began < 2.9


def test_trap_37_a_rebalance_waits_for_known_members_as_long_as_they_wished(node: Node, group: str) -> None:
    with Member(node.port, group) as absent, Member(node.port, group) as newcomer:
        assert absent.join(rebalance_timeout_ms=700).error_code == 0
        assert absent.sync({absent.member_id: b""}).error_code == 0
        began = time.monotonic()
        joined = newcomer.join(rebalance_timeout_ms=700)
        assert time.monotonic() - began > 0.6
        assert (joined.generation_id, joined.leader, len(joined.members)) == (2, newcomer.member_id, 1)
        assert absent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_37_who_joins_and_never_syncs_is_put_out(node: Node, group: str) -> None:
    """After the rebalance timeout, and the others have to come together again."""
    with Member(node.port, group) as leader, Member(node.port, group) as silent:
        began = time.monotonic()
        gathered(leader, silent, wishes=[{"rebalance_timeout_ms": 700}] * 2)
        assert leader.sync({leader.member_id: b"all"}).error_code == 0
        wait_until(lambda: leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the silent one is missed")
        assert time.monotonic() - began > 0.6
        assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_37_who_does_not_heartbeat_is_put_out(node: Node, raw: Raw, group: str) -> None:
    with Member(node.port, group) as member:
        assert member.join(session_timeout_ms=900).error_code == 0
        assert member.sync({member.member_id: b""}).error_code == 0
        for _ in range(4):
            time.sleep(0.5)
            assert member.heartbeat() == ErrorCode.NONE, "a heartbeat in time keeps it in, and so beyond 900 ms"
        time.sleep(1.5)
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
        (described,) = raw.call("DescribeGroups", 5, DescribeGroupsRequest([group])).groups
        assert (described.group_state, described.protocol_type, described.members) == ("Empty", "consumer", [])


def test_trap_38_only_the_leader_is_told_who_is_there(node: Node, group: str) -> None:
    """The first stays the leader; it hears everyone's metadata as it was given, and others hear nothing."""
    with Member(node.port, group) as first, Member(node.port, group) as second:
        assert first.join(protocols={"range": b"\xffone"}).leader == first.member_id
        second.send_join(protocols={"range": b"two"})
        assert second.raw.hears_nothing_for(0.3), "the first has to come again"
        first.send_join(protocols={"range": b"\xffone"})
        leading, following = first.heard_join(), second.heard_join()
        assert leading.leader == following.leader == first.member_id
        assert {one.member_id: bytes(one.metadata) for one in leading.members} == {
            first.member_id: b"\xffone",
            second.member_id: b"two",
        }
        assert following.members == []
        assert {leading.generation_id, following.generation_id} == {2}


def test_trap_38_followers_wait_for_the_leader_and_are_given_what_it_says(node: Node, group: str) -> None:
    with Member(node.port, group) as first, Member(node.port, group) as second, Member(node.port, group) as third:
        gathered(first, second, third)
        second.send_sync()
        assert second.raw.hears_nothing_for(0.3)
        given = {first.member_id: b"for the first", second.member_id: b"for the second"}
        assert bytes(first.sync(given).assignment) == b"for the first"
        assert bytes(second.heard().assignment) == b"for the second"
        assert bytes(third.sync().assignment) == b"", "whom the leader forgot has nothing"
        assert bytes(second.sync().assignment) == b"for the second", "and may ask again"


def test_trap_38_the_protocol_is_voted_for_among_those_that_all_can(node: Node, group: str) -> None:
    """Each votes for the first of its own that all support."""
    members = [Member(node.port, group) for _ in range(3)]
    wishes = [{"a": b"1", "b": b"1", "c": b"1"}, {"d": b"2", "b": b"2", "a": b"2"}, {"b": b"3", "a": b"3"}]
    answers = gathered(*members, wishes=[{"protocols": wish} for wish in wishes])
    assert [answer.protocol_name for answer in answers] == ["b", "b", "b"]
    assert sorted(bytes(one.metadata) for one in answers[0].members) == [b"1", b"2", b"3"], "each one's for b"
    for member in members:
        member.raw.close()


def test_trap_38_nothing_in_common_is_an_inconsistent_group_protocol(node: Node, group: str) -> None:
    with settled(node.port, group) as member, Member(node.port, group) as other:
        wishes: list[dict[str, Any]] = [
            {"protocols": {"roundrobin": b""}},
            {"protocols": {}},
            {"protocols": {"Range": b""}},
            {"protocol_type": "connect"},
            {"protocol_type": ""},
        ]
        for wrong in wishes:
            answer = other.raw.call("JoinGroup", 9, other.join_request(**wrong))
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, wrong
        assert member.heartbeat() == ErrorCode.NONE, "nobody was disturbed"
    with Member(node.port, f"{group}-new") as first:
        for wrong in (wishes[1], wishes[4]):
            answer = first.raw.call("JoinGroup", 9, first.join_request(**wrong))
            assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "not even when it is the first"


def test_trap_38_a_group_has_a_name(node: Node) -> None:
    with Member(node.port, "") as member:
        assert member.raw.call("JoinGroup", 9, member.join_request()).error_code == ErrorCode.INVALID_GROUP_ID


def test_trap_38_sync_says_who_it_is_and_by_which_protocol(node: Node, group: str) -> None:
    with Member(node.port, group) as member:
        assert member.join().error_code == 0
        assert member.sync(generation_id=99).error_code == ErrorCode.ILLEGAL_GENERATION
        assert member.sync(member_id="x").error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.sync(protocol_name="roundrobin").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert member.sync(protocol_type="connect").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        right = member.sync({member.member_id: assignment({})})
        assert (right.error_code, right.protocol_type, right.protocol_name) == (0, "consumer", "range")


def test_trap_38_a_member_that_joins_unchanged_is_answered_at_once(node: Node, group: str) -> None:
    """A follower whose metadata is the same disturbs nobody; the leader's join always begins a rebalance."""
    with Member(node.port, group) as first, Member(node.port, group) as second:
        gathered(first, second)
        assert first.sync({first.member_id: b"1", second.member_id: b"2"}).error_code == second.sync().error_code == 0
        assert second.join().generation_id == 2
        assert (first.heartbeat(), second.heartbeat()) == (0, 0)
        first.send_join()
        assert first.raw.hears_nothing_for(0.3)
        wait_until(lambda: second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "they come together again")
        second.send_join()
        assert (first.heard_join().generation_id, second.heard_join().generation_id) == (3, 3)


def test_trap_38_a_join_that_comes_twice_before_the_assignment_is_answered_twice(node: Node, group: str) -> None:
    """Its first answer may have been lost. Nothing begins anew, unless the member wishes something else now."""
    with Member(node.port, group) as leader:
        leader.join()
        again = leader.join()
        assert (again.error_code, again.generation_id, len(again.members)) == (0, 1, 1)
        assert leader.join(protocols={"range": subscription("something-new")}).generation_id == 2
