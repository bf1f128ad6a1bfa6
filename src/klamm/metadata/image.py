"""The cluster as a value: what every committed metadata record up to one offset adds up to.

An image never changes. `delta.py` makes the next one, which shares everything that stayed the same, so an image can be
kept, compared and gone back to for nothing: the controller decides on one that is ahead of what is committed, and
returns to the committed one when it loses the leadership.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from klamm.ids import NO_BROKER, NO_EPOCH, NO_OFFSET, BrokerId, Epoch, Offset, Uuid
from klamm.metadata.buckets import Buckets


class PartitionState(NamedTuple):
    """One partition: who holds it, who is in sync, who leads. Replica 0 is the preferred leader.

    A tuple and not a dataclass, because there are tens of thousands and each is made anew for every change.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId = NO_BROKER
    leader_epoch: Epoch = 0
    partition_epoch: int = 0
    recovering: bool = False
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    directories: tuple[Uuid, ...] = ()

    def __repr__(self) -> str:
        isr = ",".join(map(str, self.isr))
        replicas = ",".join(map(str, self.replicas))
        return f"<leader={self.leader} epoch={self.leader_epoch}.{self.partition_epoch} replicas={replicas} isr={isr}>"


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionState, ...] = ()


class Endpoint(NamedTuple):
    """Where a listener is reached. `security_protocol` is Kafka's number: 0 is PLAINTEXT."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(NamedTuple):
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Broker:
    """One registered broker. Its epoch is the offset of its registration, so a later registration has a higher one."""

    broker_id: BrokerId
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()

    @property
    def is_active(self) -> bool:
        """May lead partitions and be counted in sync."""
        return not self.fenced and not self.in_controlled_shutdown


class ResourceType(IntEnum):
    """What a setting may belong to, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, or a broker by its id; the broker without a name is the cluster-wide default."""

    type: int
    name: str


NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, repr=False)
class Image:
    offset: Offset = NO_OFFSET
    epoch: Epoch = NO_EPOCH
    topics: Buckets[str, Topic] = field(default_factory=Buckets)
    topic_names: Buckets[Uuid, str] = field(default_factory=Buckets)
    brokers: Mapping[BrokerId, Broker] = field(default_factory=dict)
    configs: Buckets[ConfigResource, Mapping[str, str]] = field(default_factory=Buckets)
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0

    def topic_with_id(self, topic_id: Uuid) -> Topic | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, index: int) -> PartitionState | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found and 0 <= index < len(found.partitions) else None

    def config_of(self, resource: ConfigResource) -> Mapping[str, str]:
        """What was set on this very resource; what it inherits is the reader's affair."""
        return self.configs.get(resource, NOTHING)

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.config_of(ConfigResource(ResourceType.TOPIC, name))

    def __repr__(self) -> str:
        return f"<image offset={self.offset} epoch={self.epoch} topics={len(self.topics)} brokers={len(self.brokers)}>"


EMPTY = Image()


@lru_cache(4096)
def shared(values: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """The same tuple for equal ones: partitions by the ten thousand have the same few lists of replicas."""
    return values


@lru_cache(4096)
def shared_ids(values: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    return values
