"""Requests about groups, and what their answers say, whatever the version: fields move from one to the next."""

from collections.abc import Sequence
from typing import Any

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId, Offset, Uuid
from klamm.sim.clients.group_history import Commit
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 8, 9, 11, 12, 13, 14
CONSUMER_GROUP_HEARTBEAT = 68

FIRST_FIND_OF_MANY = 4
FIRST_OFFSETS_OF_GROUPS = 8
FIRST_OFFSETS_OF_MEMBERS = 9
FIRST_BY_ID = 10
FIRST_COMMIT_OF_INSTANCES = 7

Where = tuple[str, Uuid]
"""A topic: its name and its id."""


def find_request(version: int, group: str) -> FindCoordinatorRequest:
    if version >= FIRST_FIND_OF_MANY:
        return FindCoordinatorRequest(coordinator_keys=[group])
    return FindCoordinatorRequest(key=group)


def coordinator_of(version: int, answer: FindCoordinatorResponse) -> BrokerId:
    found = answer.coordinators[0] if version >= FIRST_FIND_OF_MANY else answer
    return NO_BROKER if found.error_code else found.node_id


def commit_request(
    version: int, group: str, where: Where, commits: Sequence[Commit], member_id: str, instance_id: str | None
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=commit.spot[2], committed_offset=commit.offset, committed_metadata=commit.name
        )
        for commit in commits
    ]
    topic = OffsetCommitRequestTopic(partitions=partitions)
    if version >= FIRST_BY_ID:
        topic.topic_id = where[1]
    else:
        topic.name = where[0]
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=commits[0].epoch, member_id=member_id, topics=[topic]
    )
    if version >= FIRST_COMMIT_OF_INSTANCES:
        request.group_instance_id = instance_id
    return request


def commit_errors(answer: OffsetCommitResponse) -> dict[int, ErrorCode]:
    """By partition: commits are of one topic."""
    return {part.partition_index: ErrorCode(part.error_code) for part in answer.topics[0].partitions}


def offset_request(
    version: int, group: str, where: Where, indexes: list[int] | None, membership: tuple[str, int] | None = None
) -> OffsetFetchRequest:
    """Of these partitions of a topic; without any, of all that the group has committed."""
    if version < FIRST_OFFSETS_OF_GROUPS:
        topics = None if indexes is None else [OffsetFetchRequestTopic(name=where[0], partition_indexes=indexes)]
        return OffsetFetchRequest(group_id=group, topics=topics)
    of_group = OffsetFetchRequestGroup(group_id=group, topics=None)
    if indexes is not None:
        topic = OffsetFetchRequestTopics(partition_indexes=indexes)
        if version >= FIRST_BY_ID:
            topic.topic_id = where[1]
        else:
            topic.name = where[0]
        of_group.topics = [topic]
    if membership is not None and version >= FIRST_OFFSETS_OF_MEMBERS:
        of_group.member_id, of_group.member_epoch = membership
    return OffsetFetchRequest(groups=[of_group])


def offsets_of(version: int, answer: OffsetFetchResponse) -> tuple[ErrorCode, dict[int, tuple[Offset, str]]]:
    """The first error if there is one; offsets and metadata of a group that reads one topic."""
    found: Any = answer.groups[0] if version >= FIRST_OFFSETS_OF_GROUPS else answer
    parts = [part for topic in found.topics for part in topic.partitions]
    codes = [found.error_code, *[part.error_code for part in parts]]
    code = next((code for code in codes if code), ErrorCode.NONE)
    return ErrorCode(code), {part.partition_index: (part.committed_offset, part.metadata or "") for part in parts}
