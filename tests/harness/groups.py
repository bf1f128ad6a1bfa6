"""What a member of a group says to its coordinator, and the part of the answer that matters.

One `Member` is one connection: a coordinator makes a joining member wait for the others, and answers of one connection
come in order. Methods that may have to wait come in two halves, `send_…` and `heard`.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from klamm.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.harness.raw import Raw, Waiting
from tests.harness.waiting import wait_until

GROUP, TRANSACTION, SHARE = 0, 1, 2
NO_GENERATION = -1

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}
"""A broker on which groups come to rest soon: with Kafka's defaults most tests would wait for seconds."""


def subscription(*topics: str) -> bytes:
    """What the consumers of all libraries tell their leader, in its oldest version."""
    names = b"".join(_string(topic) for topic in sorted(topics))
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def assignment(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """What the leader tells them, likewise."""
    topics = b"".join(
        _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in sorted(partitions.items())
    )
    return struct.pack(">hi", 0, len(partitions)) + topics + struct.pack(">i", -1)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def wait_coordinator(raw: Raw, group: str) -> None:
    """Until the group's coordinator is there and has read what it needs."""

    def is_there() -> bool:
        (found,) = raw.call("FindCoordinator", 4, FindCoordinatorRequest("", GROUP, [group])).coordinators
        return bool(found.error_code == 0) and fetch_all(raw, group).error_code == 0

    wait_until(is_there, f"there is a coordinator for {group}", within_seconds=30)


class Member:
    """A member of a classic group, who knows what it was told and says what the test wants."""

    def __init__(self, port: int, group: str, *, topics: Sequence[str] = (), instance: str | None = None) -> None:
        self.raw = Raw(port)
        self.group = group
        self.topics = tuple(topics)
        self.instance = instance
        self.member_id = ""
        self.generation = NO_GENERATION
        self._waiting: Waiting | None = None

    def __enter__(self) -> "Member":
        return self

    def __exit__(self, *_: object) -> None:
        self.raw.close()

    def join_request(self, **fields: Any) -> JoinGroupRequest:
        protocols = fields.pop("protocols", {"range": subscription(*self.topics)})
        given = {
            "group_id": self.group,
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name, data) for name, data in protocols.items()],
            **fields,
        }
        return JoinGroupRequest(**given)

    def join(self, version: int = 9, **fields: Any) -> JoinGroupResponse:
        """Joins, and again with the id the coordinator gave if it asks for that."""
        self.send_join(version, **fields)
        return self.heard_join()

    def send_join(self, version: int = 9, **fields: Any) -> None:
        """Sends the join that will be answered when the group has come together."""
        if version >= 4 and not self.member_id and self.instance is None:
            first = self.raw.call("JoinGroup", version, self.join_request(**fields))
            assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED, first
            self.member_id = first.member_id
        self._waiting = self.raw.send("JoinGroup", version, self.join_request(**fields))

    def heard_join(self) -> JoinGroupResponse:
        answer = self.heard()
        assert isinstance(answer, JoinGroupResponse)
        if answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def heard(self) -> Any:
        """The answer to what was sent last."""
        assert self._waiting is not None
        waiting, self._waiting = self._waiting, None
        return self.raw.receive(waiting)

    def sync(
        self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **fields: Any
    ) -> SyncGroupResponse:
        self.send_sync(assignments, version, **fields)
        answer = self.heard()
        assert isinstance(answer, SyncGroupResponse)
        return answer

    def send_sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **fields: Any) -> None:
        given = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [SyncGroupRequestAssignment(who, what) for who, what in (assignments or {}).items()],
            **fields,
        }
        self._waiting = self.raw.send("SyncGroup", version, SyncGroupRequest(**given))

    def heartbeat(self, version: int = 4, **fields: Any) -> int:
        given = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            **fields,
        }
        code: int = self.raw.call("Heartbeat", version, HeartbeatRequest(**given)).error_code
        return code

    def commit(self, topic: str, offset: int, **fields: Any) -> int:
        given = {"generation": self.generation, "member_id": self.member_id, "instance": self.instance, **fields}
        return commit(self.raw, self.group, topic, offset, **given)

    def leave(self, version: int = 5) -> int:
        """The code for this member, whichever way the version says it."""
        identity = MemberIdentity(self.member_id, self.instance)
        answer = self.raw.call("LeaveGroup", version, LeaveGroupRequest(self.group, self.member_id, [identity]))
        return int(answer.error_code or (answer.members[0].error_code if version >= 3 else 0))


def settled(port: int, group: str, *, topics: Sequence[str] = (), instance: str | None = None) -> Member:
    """The only member of a stable group; it has been given partition 0 of its topics."""
    member = Member(port, group, topics=topics, instance=instance)
    assert member.join().error_code == 0
    given = assignment({topic: [0] for topic in member.topics})
    assert member.sync({member.member_id: given}).error_code == 0
    return member


def gathered(leader: Member, *others: Member, wishes: Sequence[Mapping[str, Any]] = ()) -> list[JoinGroupResponse]:
    """All of them in one generation, led by the first; what each of them heard. `wishes` are fields of their joins."""
    members = (leader, *others)
    fields = list(wishes) or [{} for _ in members]
    assert leader.join(**fields[0]).error_code == 0
    for member, wish in zip(others, fields[1:], strict=True):
        member.send_join(**wish)
    # Only now is the leader's next join the last one; before, it could be the only one.
    wait_until(lambda: _count(leader) == len(members), f"{len(members)} are in {leader.group}")
    leader.send_join(**fields[0])
    heard = [member.heard_join() for member in members]
    assert {(answer.error_code, answer.leader) for answer in heard} == {(0, leader.member_id)}
    return heard


def _count(member: Member) -> int:
    (described,) = member.raw.call("DescribeGroups", 5, DescribeGroupsRequest([member.group])).groups
    return len(described.members)


def commit(
    raw: Raw,
    group: str,
    topic: str | bytes,
    offset: int,
    *,
    partition: int = 0,
    generation: int = NO_GENERATION,
    member_id: str = "",
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
    version: int = 9,
) -> int:
    """The code of an OffsetCommit for one partition."""
    part = OffsetCommitRequestPartition(partition, offset, leader_epoch, metadata)
    named = OffsetCommitRequestTopic(partitions=[part])
    if isinstance(topic, str):
        named.name = topic
    else:
        named.topic_id = topic
    request = OffsetCommitRequest(group, generation, member_id, instance, topics=[named])
    (answered,) = raw.call("OffsetCommit", version, request).topics
    (only,) = answered.partitions
    code: int = only.error_code
    return code


def fetch_all(raw: Raw, group: str, topics: Mapping[str, Sequence[int]] | None = None, *, version: int = 9) -> Any:
    """The group's part of an OffsetFetch of these partitions, or of all there are."""
    asked = (
        None if topics is None else [OffsetFetchRequestTopics(t, partition_indexes=list(p)) for t, p in topics.items()]
    )
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=asked)])
    (found,) = raw.call("OffsetFetch", version, request).groups
    return found


def committed(raw: Raw, group: str, topic: str, partition: int = 0) -> int:
    """How far the group has got; -1 if it has not begun."""
    (found,) = fetch_all(raw, group, {topic: [partition]}).topics
    (part,) = found.partitions
    assert part.error_code == 0, part
    offset: int = part.committed_offset
    return offset
