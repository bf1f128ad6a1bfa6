"""How a partition of the image looks to a client: whether it has a leader, and which replicas are away."""

from collections.abc import Collection

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId
from klamm.metadata.image import Image, PartitionState


def leader_of(state: PartitionState, image: Image, absent: Collection[BrokerId]) -> tuple[ErrorCode, BrokerId]:
    """The leader, or why there is none to be named."""
    if _is_alive(state.leader, image) and state.leader not in absent:
        return ErrorCode.NONE, state.leader
    return ErrorCode.LEADER_NOT_AVAILABLE, NO_BROKER


def offline_replicas(state: PartitionState, image: Image) -> list[BrokerId]:
    return [replica for replica in state.replicas if not _is_alive(replica, image)]


def _is_alive(broker_id: BrokerId, image: Image) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced
