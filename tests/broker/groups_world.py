"""The world of brokers, where the controller's one topic is that of the offsets, and clients of groups ask."""

from collections.abc import Sequence
from typing import Any

import pytest

from klamm.controller.names import CONSUMER_OFFSETS
from klamm.handlers import heartbeat, join_group, list_groups, offset_commit, offset_fetch, sync_group
from klamm.ids import BrokerId
from klamm.metadata.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from klamm.wire.messages.sync_group import SyncGroupRequest
from tests.broker import toy_controller, world
from tests.broker.world import Member, World

GROUP = "readers"


class GroupsWorld(World):
    def __init__(self, replicas: Sequence[BrokerId] = (0, 1, 2), partitions: int = 1, **settings: str) -> None:
        super().__init__(3, **settings)
        self.create_topic(*[list(replicas) for _ in range(partitions)])
        self.create("orders")
        self.settle_all()

    def create(self, name: str, partitions: int = 3) -> None:
        """A topic to commit offsets for. Nobody has replicas of it here."""
        topic_id = topic_id_of(name, len(self.controller.images))
        records: list[Any] = [TopicRecord(name=name, topic_id=topic_id)]
        for index in range(partitions):
            records.append(PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[9], isr=[9], leader=9))
        self.controller.commit(*records)
        self.follow_all()

    def delete(self, name: str) -> None:
        self.controller.commit(RemoveTopicRecord(topic_id=self.controller.image.topics[name].topic_id))

    def lead(self, broker_id: BrokerId, index: int = 0) -> None:
        self.controller.elect(index, broker_id)

    def take_over(self, broker_id: BrokerId, index: int = 0) -> None:
        """It leads, and the others have found it."""
        self.lead(broker_id, index)
        self.settle_all()
        self.advance(1_000)
        self.settle_all()

    def tick(self) -> None:
        """Whatever groups wait for, and who waits too long."""
        for member in self.up:
            member.broker.coordination.tick(self.now)
            member.tick()

    def pass_ms(self, ms: float) -> None:
        self.advance(ms)
        self.tick()


def topic_id_of(name: str, number: int) -> bytes:
    return f"{name}{number}".encode().ljust(16, b".")


@pytest.fixture(autouse=True)
def the_topic_is_that_of_the_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_controller, "TOPIC", CONSUMER_OFFSETS)
    monkeypatch.setattr(world, "TOPIC", CONSUMER_OFFSETS)


# Asking. Each gives a list that holds the answer as soon as it is there.


def commit(
    member: Member, offset: int, partition: int = 0, topic: str = "orders", group_id: str = GROUP, metadata: str = ""
) -> list[int]:
    data = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=-1
    )
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[data])],
    )
    codes: list[int] = []
    member.ask(offset_commit.handle, request, 8, lambda found: codes.append(found.topics[0].partitions[0].error_code))
    return codes


def fetched(member: Member, group_id: str = GROUP, topic: str = "orders", partition: int = 0) -> list[int | str]:
    """The offset, or the name of the error."""
    request = OffsetFetchRequest(
        group_id=group_id, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    )
    found: list[int | str] = []

    def answered(response: Any) -> None:
        code = response.error_code
        found.append(f"error {code}" if code else response.topics[0].partitions[0].committed_offset)

    member.ask(offset_fetch.handle, request, 7, answered)
    return found


def joined(member: Member, member_id: str = "", version: int = 3) -> list[Any]:
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    answers: list[Any] = []
    member.ask(join_group.handle, request, version, answers.append)
    return answers


def synced(member: Member, answer: Any) -> list[Any]:
    answers: list[Any] = []
    request = SyncGroupRequest(group_id=GROUP, generation_id=answer.generation_id, member_id=answer.member_id)
    member.ask(sync_group.handle, request, 3, answers.append)
    return answers


def beaten(member: Member, answer: Any) -> list[int]:
    codes: list[int] = []
    request = HeartbeatRequest(group_id=GROUP, generation_id=answer.generation_id, member_id=answer.member_id)
    member.ask(heartbeat.handle, request, 3, lambda found: codes.append(found.error_code))
    return codes


def listed(member: Member) -> list[Any]:
    answers: list[Any] = []
    member.ask(list_groups.handle, ListGroupsRequest(), 5, answers.append)
    return answers
