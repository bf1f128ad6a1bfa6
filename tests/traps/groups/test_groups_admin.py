"""Trap 45 and what tools ask of a coordinator: groups listed, described and deleted, and offsets of them."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.harness.groups import Member, assignment, commit, fetch_all, gathered, settled, subscription
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until

NO_OPERATIONS = -(2**31)
READ_DESCRIBE_DELETE_AND_CONFIGS = 3400
"""What one may do to a group, as bits: read 3, delete 6, describe 8, describe its configs 10, alter them 11."""


def described(raw: Raw, group: str, version: int = 6) -> DescribedGroup:
    (found,) = raw.call("DescribeGroups", version, DescribeGroupsRequest([group], True)).groups
    assert isinstance(found, DescribedGroup)
    return found


def listed(raw: Raw, *groups: str, version: int = 5, states: list[str] | None = None, types: list[str] | None = None):  # type: ignore[no-untyped-def]
    """Protocol type, state and type of those of these groups that are listed."""
    answer = raw.call("ListGroups", version, ListGroupsRequest(states or [], types or []))
    assert answer.error_code == 0
    return {
        one.group_id: (one.protocol_type, one.group_state, one.group_type)
        for one in answer.groups
        if one.group_id in groups
    }


@pytest.mark.parametrize("version", range(7))
def test_trap_45_a_group_that_is_not_there_is_dead_and_from_version_6_on_an_error(
    raw: Raw, group: str, version: int
) -> None:
    (found,) = raw.call("DescribeGroups", version, DescribeGroupsRequest([group])).groups
    assert (found.group_id, found.group_state, found.protocol_type, found.members) == (group, "Dead", "", [])
    if version < 6:
        assert found.error_code == 0
    else:
        assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert found.error_message == f"Group {group} not found."


@pytest.mark.parametrize("version", range(7))
def test_trap_45_a_stable_group_is_described_with_metadata_and_assignment(
    node: Node, raw: Raw, group: str, version: int
) -> None:
    with settled(node.port, group, topics=["a"], instance="one") as member:
        found = described(raw, group, version)
        assert (found.error_code, found.group_state) == (0, "Stable")
        assert (found.protocol_type, found.protocol_data) == ("consumer", "range")
        (one,) = found.members
        assert (one.member_id, one.client_id, one.client_host) == (member.member_id, "raw", "/127.0.0.1")
        assert one.group_instance_id == ("one" if version >= 4 else None)
        assert bytes(one.member_metadata) == subscription("a")
        assert bytes(one.member_assignment) == assignment({"a": [0]})
        assert found.authorized_operations == (READ_DESCRIBE_DELETE_AND_CONFIGS if version >= 3 else NO_OPERATIONS)
        (unasked,) = raw.call("DescribeGroups", version, DescribeGroupsRequest([group])).groups
        assert unasked.authorized_operations == NO_OPERATIONS


def test_trap_45_a_group_between_generations_shows_neither_protocol_nor_metadata(
    node: Node, raw: Raw, group: str
) -> None:
    with Member(node.port, group) as leader, Member(node.port, group) as other, Member(node.port, group) as third:
        gathered(leader, other)
        found = described(raw, group)
        assert (found.group_state, found.protocol_type, found.protocol_data) == ("CompletingRebalance", "consumer", "")
        assert {one.member_id for one in found.members} == {leader.member_id, other.member_id}
        assert {(bytes(one.member_metadata), bytes(one.member_assignment)) for one in found.members} == {(b"", b"")}
        assert leader.sync({}).error_code == other.sync().error_code == 0
        third.send_join()
        wait_until(lambda: described(raw, group).group_state == "PreparingRebalance", "they are awaited")
        assert len(described(raw, group).members) == 3
        assert listed(raw, group) == {group: ("consumer", "PreparingRebalance", "classic")}


def test_trap_45_groups_are_listed_with_protocol_type_state_and_type(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    """A group that only has offsets has no protocol type, and tools show it as well."""
    simple, connect, empty = f"{group}-simple", f"{group}-connect", f"{group}-empty"
    assert commit(raw, simple, topic, 1) == 0
    with (
        settled(node.port, group),
        Member(node.port, connect) as worker,
        settled(node.port, empty) as gone,
    ):
        assert worker.join(protocol_type="connect", protocols={"sessioned": b"any bytes"}).error_code == 0
        assert gone.leave() == 0
        everything = (group, simple, connect, empty)
        whole = {
            group: ("consumer", "Stable", "classic"),
            simple: ("", "Empty", "classic"),
            connect: ("connect", "CompletingRebalance", "classic"),
            empty: ("consumer", "Empty", "classic"),
        }
        assert listed(raw, *everything) == whole
        for version in range(4):
            shown = {name: (kind, "", "") for name, (kind, _, _) in whole.items()}
            assert listed(raw, *everything, version=version) == shown
        assert listed(raw, *everything, version=4, states=["Stable"]) == {group: ("consumer", "Stable", "")}
        assert set(listed(raw, *everything, states=["empty", "COMPLETINGREBALANCE"])) == {simple, empty, connect}
        assert listed(raw, *everything, states=["NoSuchState"]) == {}
        assert listed(raw, *everything, types=["CLASSIC"]) == whole
        assert listed(raw, *everything, types=["consumer"]) == listed(raw, *everything, types=["none"]) == {}
        assert set(listed(raw, *everything, states=["Stable"], types=["classic", "share"])) == {group}


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted_when_they_are_empty(
    node: Node, raw: Raw, group: str, topic: str, made: bytes, version: int
) -> None:
    """Then their offsets are gone, and the name is free."""

    def deleted(*groups: str) -> dict[str, int]:
        answer = raw.call("DeleteGroups", version, DeleteGroupsRequest(list(groups)))
        return {one.group_id: one.error_code for one in answer.results}

    with settled(node.port, group, topics=[topic]) as member:
        assert member.commit(topic, 1) == 0
        assert deleted(group, "no-such-group", "") == {
            group: ErrorCode.NON_EMPTY_GROUP,
            "no-such-group": ErrorCode.GROUP_ID_NOT_FOUND,
            "": ErrorCode.GROUP_ID_NOT_FOUND,
        }
        assert member.leave() == 0
    assert deleted(group) == {group: ErrorCode.NONE}
    assert deleted(group) == {group: ErrorCode.GROUP_ID_NOT_FOUND}
    assert described(raw, group).group_state == "Dead"
    assert fetch_all(raw, group).topics == [] and listed(raw, group) == {}
    with settled(node.port, group) as again:
        assert again.generation == 1


def offsets_deleted(raw: Raw, group: str, topic: str, *partitions: int) -> OffsetDeleteResponse:
    wish = OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(number) for number in partitions])
    answer = raw.call("OffsetDelete", 0, OffsetDeleteRequest(group, [wish]))
    assert isinstance(answer, OffsetDeleteResponse)
    return answer


def _codes(answer: OffsetDeleteResponse) -> dict[int, int]:
    return {part.partition_index: part.error_code for one in answer.topics for part in one.partitions}


def test_offsets_are_deleted_where_nobody_is_subscribed(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    """Which Kafka knows from the members' subscriptions; a partition without an offset is fine."""
    with settled(node.port, group, topics=[topic]) as member:
        assert member.commit(topic, 1) == member.commit(topic, 2, partition=1) == 0
        refused = offsets_deleted(raw, group, topic, 0, 1)
        assert (refused.error_code, _codes(refused)) == (0, dict.fromkeys((0, 1), ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
        unknown = offsets_deleted(raw, group, "no-such-topic", 0)
        assert _codes(unknown) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert member.leave() == 0
    allowed = offsets_deleted(raw, group, topic, 0, 3, 99)
    assert (allowed.error_code, _codes(allowed)) == (0, {0: 0, 3: 0, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    assert [part.partition_index for part in fetch_all(raw, group).topics[0].partitions] == [1]


def test_offsets_of_another_topic_are_deleted_while_the_group_is_at_work(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    with settled(node.port, group, topics=["something-else"]) as member:
        assert member.commit(topic, 1) == 0
        assert _codes(offsets_deleted(raw, group, topic, 0)) == {0: ErrorCode.NONE}
        assert fetch_all(raw, group).topics == []


def test_offsets_of_a_group_that_is_not_there_or_not_of_consumers(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    absent = offsets_deleted(raw, group, topic, 0)
    assert (absent.error_code, absent.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    with Member(node.port, group) as worker:
        assert worker.join(protocol_type="connect", protocols={"x": b""}).error_code == 0
        other = offsets_deleted(raw, group, topic, 0)
        assert (other.error_code, other.topics) == (ErrorCode.NON_EMPTY_GROUP, [])


def test_offsets_leave_with_their_topic(raw: Raw, group: str, topic: str, made: bytes) -> None:
    assert commit(raw, group, topic, 1) == 0
    raw.call("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=10_000))
    wait_until(lambda: fetch_all(raw, group).topics == [], "the offsets are gone")
