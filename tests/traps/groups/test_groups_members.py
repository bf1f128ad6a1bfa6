"""Traps 39 and 43: heartbeats by the group's state, members who leave, and static members who come back."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.harness.groups import Member, gathered, settled, subscription
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until


def test_trap_39_a_heartbeat_hears_of_a_rebalance_while_members_are_awaited(
    node: Node, group: str, topic: str, made: bytes
) -> None:
    """Empty: unknown. Completing or stable: fine. Preparing: come again. Commits are refused while completing only."""
    with Member(node.port, group, topics=[topic]) as member, Member(node.port, group, topics=[topic]) as other:
        assert member.heartbeat(member_id="x", generation_id=1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.join().error_code == 0
        assert member.heartbeat() == ErrorCode.NONE, "completing"
        assert member.commit(topic, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        assert member.sync({member.member_id: b""}).error_code == 0
        assert member.heartbeat() == ErrorCode.NONE, "stable"
        assert member.commit(topic, 2) == ErrorCode.NONE
        other.send_join()
        wait_until(lambda: member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "preparing")
        assert member.commit(topic, 3) == ErrorCode.NONE, "the last chance before its partitions are another's"
        assert member.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
        member.send_join()
        assert (member.heard_join().error_code, other.heard_join().error_code) == (0, 0)
        assert (member.heartbeat(), other.heartbeat()) == (0, 0), "completing"
        assert member.leave() == other.leave() == ErrorCode.NONE
        assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID, "empty"


@pytest.mark.parametrize("version", range(10))
def test_trap_39_a_whole_life_in_every_version(node: Node, group: str, version: int) -> None:
    """Joined, given something, heard, gone; with every version of each, the newest where it has no newer one."""
    with Member(node.port, group) as member:
        joined = member.join(version)
        assert (joined.error_code, joined.protocol_type) == (0, "consumer" if version >= 7 else None)
        given = member.sync({member.member_id: b"something"}, version=min(version, 5))
        assert (given.error_code, bytes(given.assignment)) == (0, b"something")
        assert given.protocol_name == ("range" if version >= 5 else None)
        assert member.heartbeat(min(version, 4)) == ErrorCode.NONE
        assert member.leave(min(version, 5)) == ErrorCode.NONE
        assert member.heartbeat(min(version, 4)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_39_a_heartbeat_is_of_a_member_and_of_a_generation(node: Node, group: str) -> None:
    with settled(node.port, group) as member:
        assert member.heartbeat(generation_id=member.generation + 1) == ErrorCode.ILLEGAL_GENERATION
        assert member.heartbeat(generation_id=member.generation - 1) == ErrorCode.ILLEGAL_GENERATION
        assert member.heartbeat(member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.heartbeat(group_instance_id="not-static") == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.heartbeat(group_id="no-such-group") == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.heartbeat(group_id="") == ErrorCode.INVALID_GROUP_ID


def test_trap_39_who_leaves_makes_the_others_come_together(node: Node, group: str) -> None:
    with Member(node.port, group) as leader, Member(node.port, group) as follower:
        gathered(leader, follower)
        assert leader.sync({leader.member_id: b"1", follower.member_id: b"2"}).error_code == 0
        assert leader.leave() == ErrorCode.NONE
        assert leader.leave() == ErrorCode.UNKNOWN_MEMBER_ID
        assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        alone = follower.join()
        assert (alone.generation_id, alone.leader, len(alone.members)) == (3, follower.member_id, 1)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_trap_39_several_may_leave_at_once_from_version_3_on(node: Node, raw: Raw, group: str, version: int) -> None:
    """Each has its own code. Static ones are named by their instance, with or without the member's id."""
    with Member(node.port, group, instance="static") as static, Member(node.port, group) as dynamic:
        gathered(static, dynamic)
        going = [
            MemberIdentity("nobody"),
            MemberIdentity(dynamic.member_id),
            MemberIdentity("", "no-such-instance"),
            MemberIdentity("wrong-id", "static"),
            MemberIdentity("", "static"),
        ]
        answer = raw.call("LeaveGroup", version, LeaveGroupRequest(group, "", going))
        assert answer.error_code == 0
        assert [(one.member_id, one.group_instance_id, one.error_code) for one in answer.members] == [
            ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
            (dynamic.member_id, None, ErrorCode.NONE),
            ("", "no-such-instance", ErrorCode.UNKNOWN_MEMBER_ID),
            ("wrong-id", "static", ErrorCode.FENCED_INSTANCE_ID),
            ("", "static", ErrorCode.NONE),
        ]
        assert static.heartbeat() == dynamic.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(6))
def test_trap_39_leaving_a_group_that_is_not_there(raw: Raw, group: str, version: int) -> None:
    """The code is on top until version 2, and with each member from 3 on."""
    answer = raw.call("LeaveGroup", version, LeaveGroupRequest(group, "x", [MemberIdentity("x")]))
    if version < 3:
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    else:
        assert answer.error_code == 0
        assert [one.error_code for one in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID]
    nameless = raw.call("LeaveGroup", version, LeaveGroupRequest("", "x", [MemberIdentity("x")]))
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_trap_43_a_static_member_comes_back_without_a_rebalance(node: Node, group: str) -> None:
    """It is given a new id, the same generation and, when it asks, what it had before. It needs no id to join."""
    with (
        Member(node.port, group, instance="one") as one,
        Member(node.port, group, instance="two") as two,
        Member(node.port, group, instance="two") as two_again,
    ):
        gathered(one, two)
        assert one.sync({one.member_id: b"1", two.member_id: b"2"}).error_code == two.sync().error_code == 0
        assert two.member_id.startswith("two-"), "the instance's name, and something nobody else has"
        back = two_again.join()
        assert (back.error_code, back.generation_id, back.leader, back.members) == (0, 2, one.member_id, [])
        assert two_again.member_id != two.member_id and two_again.member_id.startswith("two-")
        assert bytes(two_again.sync().assignment) == b"2"
        assert (one.heartbeat(), two_again.heartbeat()) == (0, 0), "nobody has to come together"


def test_trap_43_the_older_of_two_with_one_instance_is_fenced(node: Node, group: str, topic: str, made: bytes) -> None:
    """In everything it says. Without the instance's name, its id is simply unknown."""
    with settled(node.port, group, instance="one") as old, Member(node.port, group, instance="one") as new:
        assert new.join().error_code == 0
        fenced = ErrorCode.FENCED_INSTANCE_ID
        assert [old.heartbeat(), old.commit(topic, 1), old.sync().error_code, old.leave()] == [fenced] * 4
        assert old.raw.call("JoinGroup", 9, old.join_request()).error_code == fenced
        assert old.heartbeat(group_instance_id=None) == ErrorCode.UNKNOWN_MEMBER_ID
        assert new.heartbeat() == new.commit(topic, 1) == ErrorCode.NONE


def test_trap_43_a_static_leader_that_comes_back_does_not_assign_again(node: Node, group: str) -> None:
    """From version 9 on it is told so, and who is there. Before, another seems to be the leader: its own old id."""
    with settled(node.port, group, instance="one") as member, Member(node.port, group, instance="one") as back:
        told = back.join(9)
        assert (told.skip_assignment, told.leader, len(told.members)) == (True, back.member_id, 1)
        member.member_id = back.member_id
        with Member(node.port, group, instance="one") as older:
            untold = older.join(8)
            assert (untold.generation_id, untold.leader, untold.members) == (1, back.member_id, [])
            assert older.heartbeat() == ErrorCode.NONE


def test_trap_43_a_static_member_that_comes_back_wishing_something_else(node: Node, group: str) -> None:
    """Another protocol's metadata does not matter for the vote: there is no rebalance, and it keeps what it had."""
    with settled(node.port, group, topics=["a"], instance="one"), Member(node.port, group, instance="one") as back:
        again = back.join(protocols={"range": subscription("a", "b")})
        assert (again.error_code, again.generation_id, again.skip_assignment) == (0, 1, True)
        assert [bytes(one.metadata) for one in again.members] == [subscription("a", "b")]
    with Member(node.port, group, instance="one") as back:
        changed = back.join(protocols={"roundrobin": subscription("a")})
        assert changed.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its former self votes, too"


def test_trap_43_a_static_member_that_leaves_is_missed(node: Node, group: str) -> None:
    with Member(node.port, group, instance="one") as one, Member(node.port, group, instance="two") as two:
        gathered(one, two)
        assert one.sync({}).error_code == two.sync().error_code == 0
        assert two.leave() == ErrorCode.NONE
        assert one.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
