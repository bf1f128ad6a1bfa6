"""Who leads a partition and where that broker is reached: told to clients that asked the wrong one (KIP-951)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from klamm.ids import NO_BROKER, NO_EPOCH, BrokerId, Epoch

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


def current_leader(topic: str | bytes, index: int, broker: "Broker") -> tuple[BrokerId, Epoch]:
    """By the topic's name or id; (-1, -1) if it is not known."""
    image = broker.image
    found = image.topics.get(topic) if isinstance(topic, str) else image.topic_with_id(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return NO_BROKER, NO_EPOCH
    state = found.partitions[index]
    return state.leader, state.leader_epoch


def leader_endpoints(leaders: Iterable[BrokerId], broker: "Broker") -> list[tuple[BrokerId, str, int, str | None]]:
    """Id, host, port and rack of those that are known."""
    known = [broker.image.brokers[each] for each in sorted(leaders) if each in broker.image.brokers]
    return [
        (each.broker_id, each.endpoints[0].host, each.endpoints[0].port, each.rack) for each in known if each.endpoints
    ]
