"""A node with what small requests can ask for much of: a wide topic, a group with many members, many offsets."""

from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.fuzz.multiplied import GROUP, TOPIC
from tests.node.requests import create
from tests.node.world import World

READERS = "readers"
"""A group without members that has committed an offset for every partition."""


def crowded(partitions: int, members: int) -> tuple[World, bytes]:
    """The world, and the topic's id."""
    world = World()
    client = world.connect()
    topic_id = create(client, TOPIC, partitions)
    client.ask(FindCoordinatorRequest(coordinator_keys=[GROUP]), version=4)
    world.advance(1_000)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"m" * 20)]
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        protocol_type="consumer",
        protocols=protocols,
    )
    for _ in range(members):
        world.connect().post(request, version=3)
    world.advance(4_000)
    wanted = [OffsetCommitRequestPartition(partition_index=index) for index in range(partitions)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=wanted)]
    client.ask(OffsetCommitRequest(group_id=READERS, topics=topics), version=8)
    return world, topic_id
