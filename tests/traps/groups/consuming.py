"""A member of a group of the newer protocol: all it says is ConsumerGroupHeartbeat."""

from typing import Any

from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from klamm.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2


class Consumer:
    """Says what the test wants; remembers the epoch it was given, and the partitions of its one topic."""

    def __init__(self, raw: Raw, group: str, member_id: str, topic: str, topic_id: bytes) -> None:
        self.raw = raw
        self.group = group
        self.member_id = member_id
        self.topic = topic
        self.topic_id = topic_id
        self.instance: str | None = None
        self.epoch = JOIN
        self.assigned: list[int] = []

    def join(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        given = {
            "rebalance_timeout_ms": 10_000,
            "subscribed_topic_names": [self.topic],
            "topic_partitions": [],
            **fields,
        }
        return self.heartbeat(epoch=JOIN, **given)

    def heartbeat(
        self, *owned: int, epoch: int | None = None, version: int = 1, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        """Owned partitions are said if there are any; nothing else is, unless it is given."""
        if owned:
            fields["topic_partitions"] = [TopicPartitions(self.topic_id, list(owned))]
        given = {"instance_id": self.instance, **fields}
        epoch = self.epoch if epoch is None else epoch
        request = ConsumerGroupHeartbeatRequest(self.group, self.member_id, epoch, **given)
        answer = self.raw.call("ConsumerGroupHeartbeat", version, request)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                found = {one.topic_id: list(one.partitions) for one in answer.assignment.topic_partitions}
                self.assigned = sorted(found.get(self.topic_id, []))
        return answer


def wait_known(raw: Raw, topic: str, topic_id: bytes) -> None:
    """Until the coordinator has heard of the topic, which on Kafka is a moment after its leaders answer."""
    scout = Consumer(raw, f"scouts-of-{topic}", "scout", topic, topic_id)
    scout.join()
    wait_until(lambda: scout.heartbeat().error_code == 0 and scout.assigned != [], f"{topic} is known")
    scout.heartbeat(epoch=LEAVE)


def described(raw: Raw, group: str, version: int = 1) -> DescribedGroup:
    (found,) = raw.call("ConsumerGroupDescribe", version, ConsumerGroupDescribeRequest([group])).groups
    assert isinstance(found, DescribedGroup)
    return found
