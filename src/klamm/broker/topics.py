"""How a partition of the image looks to a client: whether it has a leader, and which replicas are away."""

from klamm.errors import ErrorCode
from klamm.ids import BrokerId
from klamm.metadata.image import Image, PartitionState


def partition_error(state: PartitionState, image: Image) -> ErrorCode:
    return ErrorCode.NONE if _is_alive(state.leader, image) else ErrorCode.LEADER_NOT_AVAILABLE


def offline_replicas(state: PartitionState, image: Image) -> list[BrokerId]:
    return [replica for replica in state.replicas if not _is_alive(replica, image)]


def _is_alive(broker_id: BrokerId, image: Image) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced
