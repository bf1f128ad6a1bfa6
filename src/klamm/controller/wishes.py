"""What the controller is asked for, and what it answers: one small value an item, with its own error.

They are the controller's, not the wire's: handlers translate Kafka's requests of whatever version into these.
"""

from dataclasses import dataclass, field
from enum import IntEnum

from klamm.config import Change
from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, NO_EPOCH, ZERO_UUID, BrokerId, Epoch, TopicPartition, Uuid
from klamm.metadata.image import ConfigResource

BROKERS_DEFAULT = -1


@dataclass(slots=True)
class NewTopic:
    """So many partitions and replicas (-1 is the broker's default), or who holds what exactly."""

    name: str
    partitions: int = BROKERS_DEFAULT
    replication_factor: int = BROKERS_DEFAULT
    assignments: list[tuple[int, list[BrokerId]]] = field(default_factory=list)
    configs: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(slots=True)
class CreatedTopic:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: Uuid = ZERO_UUID
    partitions: int = -1
    replication_factor: int = -1


@dataclass(slots=True)
class MorePartitions:
    """A topic shall have `count` partitions in all; `assignments` says who holds the new ones."""

    name: str
    count: int
    assignments: list[list[BrokerId]] | None = None


@dataclass(slots=True)
class GrownTopic:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class TopicToDelete:
    """Named by name or by id, not by both."""

    name: str | None = None
    topic_id: Uuid = ZERO_UUID


@dataclass(slots=True)
class DeletedTopic:
    name: str | None
    topic_id: Uuid = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class ConfigChanges:
    """Single operations on the settings of a resource."""

    resource: ConfigResource
    changes: list[Change] = field(default_factory=list)


@dataclass(slots=True)
class ConfigReplacement:
    """The settings a resource shall have from now on; those not named go back to their defaults."""

    resource: ConfigResource
    values: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(slots=True)
class ConfigResult:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class PartitionAlteration:
    """A leader asks for other in-sync replicas, each with the broker epoch it was seen with (-1: not known)."""

    topic_id: Uuid
    index: int
    leader_epoch: Epoch
    partition_epoch: int
    isr: list[tuple[BrokerId, int]]
    recovering: bool = False
    """Whether it still recovers from an unclean election."""


@dataclass(slots=True)
class AlteredPartition:
    """The partition as it is now; with an error only which one it was."""

    topic_id: Uuid
    index: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    leader: BrokerId = NO_BROKER
    leader_epoch: Epoch = NO_EPOCH
    isr: tuple[BrokerId, ...] = ()
    recovering: bool = False
    partition_epoch: int = -1


class ElectionType(IntEnum):
    """By Kafka's numbers."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(slots=True)
class ElectedLeader:
    partition: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class Reassignment:
    """These shall be the replicas of a partition, in this order; None takes back what is under way."""

    partition: TopicPartition
    replicas: list[BrokerId] | None


@dataclass(slots=True)
class ReassignmentResult:
    partition: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class OngoingReassignment:
    partition: TopicPartition
    replicas: tuple[BrokerId, ...]
    adding: tuple[BrokerId, ...]
    removing: tuple[BrokerId, ...]


class UpgradeType(IntEnum):
    """By Kafka's numbers."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(slots=True)
class FeatureUpdate:
    name: str
    level: int
    kind: int = UpgradeType.UPGRADE
