"""What tests of a cluster in trouble share: names, and a few questions."""

from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.cluster_world import ClusterClient, ClusterWorld, Member

SESSION_MS = 10_000.0
"""More than a broker's session lasts, with some time for a new leader."""

NEW = "new"
OF_THE_FUTURE = 4_711
"""An error code that nobody knows yet."""


def controller_of(world: ClusterWorld) -> Member:
    controller = world.controller()
    assert controller is not None
    return controller


def another(world: ClusterWorld, *than: Member) -> Member:
    return next(member for member in world.members.values() if member not in than)


def creation(name: str = NEW, timeout_ms: int = 30_000) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)


def outcome(client: ClusterClient, number: int) -> ErrorCode:
    """What became of the only topic of a creation."""
    assert client.is_open, "the connection was closed"
    (topic,) = client.answers[number].topics
    return ErrorCode(topic.error_code)


def has_marker(member: Member) -> bool:
    return member.disk.exists(checkpoint.CLEAN_SHUTDOWN)


def checkpointed(member: Member, file: str) -> dict[TopicPartition, int]:
    found = checkpoint.read_offsets(member.disk.read_whole(file)) if member.disk.exists(file) else {}
    assert found is not None
    return found
