"""Traps 40 and 41: offsets are committed by members, or by anyone while there are none, and come back as they were."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.offset_commit import OffsetCommitRequest
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.harness.groups import commit, committed, fetch_all, settled
from tests.harness.node import Node
from tests.harness.raw import Raw

UNKNOWN_ID = b"no such topic's!"


def test_trap_40_anyone_may_commit_for_a_group_without_members(raw: Raw, group: str, topic: str, made: bytes) -> None:
    """Readers who assign, and `--reset-offsets`. A generation that is not -1 speaks of a group that is not there."""
    assert commit(raw, group, topic, 5) == ErrorCode.NONE
    assert committed(raw, group, topic) == 5
    assert commit(raw, group, topic, 4) == ErrorCode.NONE, "back as well as forth"
    assert committed(raw, group, topic) == 4
    assert commit(raw, group, topic, 6, member_id="whoever") == ErrorCode.NONE, "only the generation counts"
    assert commit(raw, group, topic, 7, generation=0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(raw, group, topic, 7, generation=5, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(raw, group, topic) == 6


@pytest.mark.parametrize("version", range(2, 11))
def test_trap_40_a_member_of_a_group_that_is_not_there(
    raw: Raw, group: str, topic: str, made: bytes, version: int
) -> None:
    """Older clients know no GROUP_ID_NOT_FOUND here."""
    place = made if version >= 10 else topic
    code = commit(raw, group, place, 1, generation=1, member_id="x", version=version)
    assert code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION)


def test_trap_40_only_members_may_commit_for_a_group_that_has_some(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    with settled(node.port, group, topics=[topic]) as member:
        assert commit(raw, group, topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.commit(topic, 1, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.commit(topic, 1, generation=member.generation + 1) == ErrorCode.ILLEGAL_GENERATION
        assert member.commit(topic, 1, generation=-1) == ErrorCode.ILLEGAL_GENERATION
        assert committed(raw, group, topic) == -1
        assert member.commit(topic, 2) == ErrorCode.NONE
        assert member.commit(topic, 3, partition=3) == ErrorCode.NONE, "whether it was assigned is not asked"
        assert member.leave() == ErrorCode.NONE
        assert member.commit(topic, 9) == ErrorCode.UNKNOWN_MEMBER_ID
        assert committed(raw, group, topic) == 2, "what was committed stays when everyone has left"
        assert commit(raw, group, topic, 4) == ErrorCode.NONE


@pytest.mark.parametrize("version", range(2, 11))
def test_trap_40_metadata_and_leader_epoch_come_back(
    raw: Raw, group: str, topic: str, made: bytes, version: int
) -> None:
    place = made if version >= 10 else topic
    assert commit(raw, group, place, 7, metadata="hier, ünd so", leader_epoch=3, version=version) == 0
    (part,) = fetch_all(raw, group, {topic: [0]}).topics[0].partitions
    epoch = 3 if version >= 6 else -1
    assert (part.committed_offset, part.metadata, part.committed_leader_epoch) == (7, "hier, ünd so", epoch)


def test_trap_40_metadata_has_a_longest_length_in_characters(raw: Raw, group: str, topic: str, made: bytes) -> None:
    """And no metadata comes back as an empty one. What is refused leaves what was there."""
    assert commit(raw, group, topic, 1, metadata="ü" * 4096) == ErrorCode.NONE
    assert commit(raw, group, topic, 2, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert committed(raw, group, topic) == 1
    assert commit(raw, group, topic, 3, metadata=None) == ErrorCode.NONE
    assert fetch_all(raw, group, {topic: [0]}).topics[0].partitions[0].metadata == ""


def test_trap_40_a_topic_or_partition_that_is_not_there(raw: Raw, group: str, topic: str, made: bytes) -> None:
    assert commit(raw, group, "no-such-topic", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(raw, group, topic, 1, partition=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(raw, group, UNKNOWN_ID, 1, version=10) == ErrorCode.UNKNOWN_TOPIC_ID
    assert commit(raw, group, made, 1, partition=4, version=10) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch_all(raw, group).topics == []


def test_trap_40_what_kafka_does_not_mind(raw: Raw, group: str, topic: str, made: bytes) -> None:
    """An offset below zero, a commit of nothing, a group without a name."""
    assert raw.call("OffsetCommit", 9, OffsetCommitRequest(group)).topics == []
    assert commit(raw, group, topic, -5) == ErrorCode.NONE
    assert commit(raw, "", topic, 5) == ErrorCode.NONE


@pytest.mark.parametrize("version", range(1, 8))
def test_trap_41_one_group_until_version_7(raw: Raw, group: str, topic: str, made: bytes, version: int) -> None:
    """No topics at all means all from version 2 on; none in the list means none."""
    assert commit(raw, group, topic, 5, metadata="here", leader_epoch=2) == 0
    assert commit(raw, group, topic, 6, partition=2) == 0

    def found(topics: list[OffsetFetchRequestTopic] | None) -> dict[int, tuple[int, int, str | None, int]]:
        answer = raw.call("OffsetFetch", version, OffsetFetchRequest(group, topics))
        assert answer.error_code == 0 and {one.name for one in answer.topics} <= {topic}
        return {
            part.partition_index: (part.committed_offset, part.committed_leader_epoch, part.metadata, part.error_code)
            for one in answer.topics
            for part in one.partitions
        }

    known = {0: (5, 2 if version >= 5 else -1, "here", 0), 2: (6, -1, "", 0)}
    nothing = (-1, -1, "", 0)
    assert found([OffsetFetchRequestTopic(topic, [0, 1, 2, 99])]) == {**known, 1: nothing, 99: nothing}
    assert found([]) == {}
    if version >= 2:
        assert found(None) == known


def test_trap_41_what_was_never_committed_is_minus_one_and_no_error(raw: Raw, group: str, topic: str) -> None:
    """A group, a topic or a partition that nobody knows is not an error here."""
    for name in (group, "", "no-such-group"):
        answer = fetch_all(raw, name, {"no-such-topic": [0, 7]})
        assert answer.error_code == 0
        assert [
            (part.committed_offset, part.committed_leader_epoch, part.metadata, part.error_code)
            for part in answer.topics[0].partitions
        ] == [(-1, -1, "", 0)] * 2
        assert fetch_all(raw, "no-such-group").topics == []


@pytest.mark.parametrize("version", [8, 9, 10])
def test_trap_41_many_groups_from_version_8_on(raw: Raw, group: str, topic: str, made: bytes, version: int) -> None:
    """In the order of the question, one of them even twice; by the topic's id in version 10."""
    assert commit(raw, group, topic, 5) == commit(raw, group, topic, 6, partition=1) == 0
    asked = OffsetFetchRequestTopics(topic, made, [1])
    groups = [
        OffsetFetchRequestGroup(group, topics=None),
        OffsetFetchRequestGroup("no-such-group", topics=None),
        OffsetFetchRequestGroup(group, topics=[asked]),
        OffsetFetchRequestGroup(group, topics=[]),
    ]
    answers = raw.call("OffsetFetch", version, OffsetFetchRequest(groups=groups)).groups
    assert [(one.group_id, one.error_code) for one in answers] == [
        (group, 0),
        ("no-such-group", 0),
        (group, 0),
        (group, 0),
    ]
    offsets = [[sorted(p.committed_offset for p in one.partitions) for one in answer.topics] for answer in answers]
    assert offsets == [[[5, 6]], [], [[6]], []]
    named = (answers[0].topics[0].name, answers[0].topics[0].topic_id)
    assert named == (("", made) if version == 10 else (topic, bytes(16)))


def test_trap_41_an_id_that_is_no_topics_is_an_error(raw: Raw, group: str, topic: str, made: bytes) -> None:
    asked = [OffsetFetchRequestTopics(topic_id=UNKNOWN_ID, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=asked)])
    ((unknown,),) = (one.topics for one in raw.call("OffsetFetch", 10, request).groups)
    (part,) = unknown.partitions
    assert (unknown.topic_id, part.error_code) == (UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)
    assert (part.committed_offset, part.committed_leader_epoch, part.metadata) == (-1, -1, "")


def test_trap_41_a_classic_group_does_not_ask_who_fetches(
    node: Node, raw: Raw, group: str, topic: str, made: bytes
) -> None:
    """Member and epoch of version 9 are for groups of the newer protocol."""
    with settled(node.port, group, topics=[topic]) as member:
        assert member.commit(topic, 8) == 0
        asked = OffsetFetchRequestGroup(group, "nobody", 77, topics=None)
        (answer,) = raw.call("OffsetFetch", 9, OffsetFetchRequest(groups=[asked], require_stable=True)).groups
        assert answer.error_code == 0 and answer.topics[0].partitions[0].committed_offset == 8
