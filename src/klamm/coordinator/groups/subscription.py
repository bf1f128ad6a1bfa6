"""What consumers of the classic protocol tell one another: their subscriptions and what the leader gave them.

To the classic protocol the metadata of JoinGroup and the assignment of SyncGroup are opaque bytes. Consumers fill them
with two small messages, and the coordinator reads these for three reasons: to know which topics a group reads (offsets
of a topic that nobody reads may expire), to describe a group, and to let a classic member live in a group of KIP-848,
where it is the coordinator who writes the assignment.

Both begin with their version. A newer version is read as the newest we know: Kafka promises that versions only add
fields at the end. Bytes that follow are therefore left alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import TypeVar

from klamm.codec.compiler import decode_from, encode
from klamm.codec.primitives import Buffer, Malformed
from klamm.codec.schema import array, bytes_, int32, message, string, struct

PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3

T = TypeVar("T")

_VERSION = Struct(">h")


@struct
class TopicPartitions:
    topic: str = string()
    partitions: list[int] = array(int32())


@message(versions="0-3")
class ConsumerProtocolSubscription:
    topics: list[str] = array(string())
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[TopicPartitions] = array(TopicPartitions, versions="1+")
    generation_id: int = int32(versions="2+", default=-1)
    rack_id: str | None = string(versions="3+", nullable="3+", default=None)


@message(versions="0-3")
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartitions] = array(TopicPartitions)
    user_data: bytes | None = bytes_(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants. `owned` is what it has not given back, by topic name, since generation `generation_id`."""

    topics: frozenset[str] = frozenset()
    user_data: bytes | None = None
    owned: Mapping[str, frozenset[int]] = field(default_factory=dict)
    generation_id: int = -1
    rack: str | None = None
    version: int = NEWEST_VERSION


@dataclass(frozen=True, slots=True)
class GivenPartitions:
    """What a member gets, by topic name."""

    partitions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    user_data: bytes | None = None
    version: int = NEWEST_VERSION


def read_subscription(data: Buffer) -> Subscription:
    version, found = _read(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=frozenset(found.topics),
        user_data=found.user_data,
        owned=_by_topic(found.owned_partitions),
        generation_id=found.generation_id,
        rack=found.rack_id or None,  # Clients send an empty one for none.
        version=version,
    )


def subscription_bytes(subscription: Subscription) -> bytes:
    """In the version of the subscription; what the version does not know is left out."""
    written = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_listed(subscription.owned),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack,
    )
    return _VERSION.pack(subscription.version) + encode(written, subscription.version)


def read_assignment(data: Buffer) -> GivenPartitions:
    version, found = _read(ConsumerProtocolAssignment, data)
    return GivenPartitions(_by_topic(found.assigned_partitions), found.user_data, version)


def assignment_bytes(
    partitions: Mapping[str, Iterable[int]], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """A member is answered in the version that it subscribed with: it may know no newer one."""
    written = ConsumerProtocolAssignment(assigned_partitions=_listed(partitions), user_data=user_data)
    return _VERSION.pack(version) + encode(written, version)


def _read(cls: type[T], data: Buffer) -> tuple[int, T]:
    """The message and the version it was read as."""
    if len(data) < _VERSION.size:
        raise Malformed(f"{cls.__name__} without a version")
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise Malformed(f"{cls.__name__} of version {version}")
    version = min(version, NEWEST_VERSION)
    return version, decode_from(cls, version, data, _VERSION.size)[0]


def _by_topic(listed: list[TopicPartitions]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for entry in listed:
        found[entry.topic] = found.get(entry.topic, frozenset()).union(entry.partitions)
    return found


def _listed(partitions: Mapping[str, Iterable[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic=topic, partitions=sorted(partitions[topic])) for topic in sorted(partitions)]
