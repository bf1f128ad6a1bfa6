"""Trap 44: a group changes its protocol while it is at work, when the first member of the other kind comes."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from tests.harness.groups import Member, assignment, commit, committed, settled
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import create
from tests.traps.groups.consuming import LEAVE, Consumer, described, wait_known

CLASSIC, NEWER = 0, 1


@pytest.fixture
def made(raw: Raw, group: str, topic: str) -> bytes:
    topic_id = create(raw, topic, partitions=4)
    wait_known(raw, topic, topic_id)
    return topic_id


def test_trap_44_a_classic_group_becomes_a_consumer_group(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    """Its members keep what they have and go on in their own words; epochs go on from the generation."""
    new = Consumer(raw, group, "new", topic, made)
    with settled(node.port, group, topics=[topic]) as old:
        assert old.commit(topic, 7) == 0
        joined = new.join()
        assert (joined.error_code, joined.member_epoch) == (0, old.generation + 1)
        assert 0 not in new.assigned and len(new.assigned) == 2, "partition 0 is the other's"
        members = {member.member_id: member.member_type for member in described(raw, group).members}
        assert members == {old.member_id: CLASSIC, "new": NEWER}
        (classic,) = raw.call("DescribeGroups", 6, DescribeGroupsRequest([group])).groups
        assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        again = old.join()
        assert (again.error_code, again.generation_id, again.members, again.leader) == (0, 2, [], "")
        assert again.protocol_name == "range"
        rest = sorted({0, 1, 2, 3} - set(new.assigned))
        assert bytes(old.sync().assignment) == assignment({topic: rest})
        assert (old.heartbeat(), new.heartbeat().error_code) == (0, 0)
        assert committed(raw, group, topic) == 7
        assert described(raw, group).group_state == "Stable"


def test_trap_44_a_classic_member_joins_a_consumer_group(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    one = Consumer(raw, group, "one", topic, made)
    one.join()
    with Member(node.port, group, topics=[topic]) as classic:
        joined = classic.join()
        assert (joined.error_code, joined.generation_id, joined.members) == (0, 3, [])
        assert bytes(classic.sync().assignment) == assignment({}), "nothing is free yet"
        one.heartbeat(0, 1, 2, 3)
        assert classic.heartbeat() == ErrorCode.NONE
        one.heartbeat(*one.assigned)
        assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "now there is something for it"
        classic.join()
        assert bytes(classic.sync().assignment) == assignment({topic: sorted({0, 1, 2, 3} - set(one.assigned))})


def test_trap_44_when_the_last_of_the_newer_kind_leaves_it_is_classic_again(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    one = Consumer(raw, group, "one", topic, made)
    with settled(node.port, group, topics=[topic]) as old:
        one.join()
        assert one.heartbeat(epoch=LEAVE).error_code == 0
        assert described(raw, group).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        (classic,) = raw.call("DescribeGroups", 6, DescribeGroupsRequest([group])).groups
        assert (classic.error_code, [member.member_id for member in classic.members]) == (0, [old.member_id])
        assert old.heartbeat() == ErrorCode.ILLEGAL_GENERATION, "the epochs went on, and the generation is the last"
        again = old.join()
        assert (again.error_code, len(again.members), again.leader) == (0, 1, old.member_id)
        assert again.generation_id > 2


def test_trap_44_only_consumers_can_join_a_consumer_group(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    Consumer(raw, group, "one", topic, made).join()
    with Member(node.port, group, topics=[topic]) as other:
        answer = other.raw.call("JoinGroup", 9, other.join_request(protocol_type="connect"))
        assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_trap_44_an_empty_group_of_either_kind_becomes_the_other(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    """With its offsets."""
    with settled(node.port, group, topics=[topic]) as old:
        assert old.commit(topic, 7) == 0
        assert old.leave() == 0
    one = Consumer(raw, group, "one", topic, made)
    assert one.join().error_code == 0
    assert committed(raw, group, topic) == 7
    assert one.heartbeat(epoch=LEAVE).error_code == 0
    assert commit(raw, group, topic, 8) == 0
    with settled(node.port, group, topics=[topic]) as new:
        assert committed(raw, group, topic) == 8
        assert new.heartbeat() == ErrorCode.NONE
        (classic,) = raw.call("DescribeGroups", 6, DescribeGroupsRequest([group])).groups
        assert classic.error_code == 0
