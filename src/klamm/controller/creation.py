"""New partitions, of new topics or of old ones: is the name free, who holds them, which records make them.

One `Creation` is one request: what it granted so far counts for those that follow, in names and in placement.
"""

from collections.abc import Iterable, Iterator, Sequence

from klamm.controller.names import CLUSTER_METADATA, can_collide, collision_key, topic_name_problem
from klamm.controller.placement import Candidate, Load, Replicas, placed
from klamm.controller.state import State
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId, Uuid
from klamm.metadata.image import Image, PartitionState, ResourceType, Topic
from klamm.metadata.partitions import UNASSIGNED_DIRECTORY, partition_record
from klamm.metadata.records import ConfigRecord, MetadataRecord, TopicRecord


class Creation:
    def __init__(self, state: State) -> None:
        self.records: list[MetadataRecord] = []
        self.image = state.image
        self._state = state
        self._leaving = state.leaving
        self._created: list[str] = []
        self._grown: list[Topic] = []
        self._load: Load | None = None
        self._collisions: dict[str, str] = {}
        self.added = 0
        """How many partitions were granted."""

    def check_name(self, name: str) -> None:
        if name == CLUSTER_METADATA:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{CLUSTER_METADATA} is the cluster's own and not created.")
        if name in self.image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        problem = topic_name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        other = self._state.colliding(name) or self._collisions.get(collision_key(name))
        if other is not None:
            reason = f"Topic '{name}' collides with '{other}': in metrics '.' and '_' are the same."
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)

    def place(self, partitions: int, factor: int, existing: Iterable[Replicas] = ()) -> Iterator[Replicas]:
        candidates = [
            Candidate(broker.broker_id, broker.rack, self._is_active(broker.broker_id))
            for broker in self.image.brokers.values()
        ]
        unable = f"Unable to replicate the partition {factor} time(s): "
        if not any(candidate.active for candidate in candidates):
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, unable + "all brokers are fenced or shutting down.")
        if factor > len(candidates):
            reason = f"only {len(candidates)} broker(s) are registered."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, unable + reason)
        return placed(candidates, self._load or self._state.load, partitions, factor, existing)

    def partition(self, index: int, replicas: Replicas) -> PartitionState:
        """A new partition: in sync are those of its replicas that are there to be."""
        isr = tuple(broker for broker in replicas if self._is_active(broker))
        if not isr:
            reason = f"No broker given for partition {index} is active: all are fenced or shutting down."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        directories = tuple(_directory(self.image, broker) for broker in replicas)
        return PartitionState(replicas, isr, leader=isr[0], directories=directories)

    def _is_active(self, broker: BrokerId) -> bool:
        return self.image.brokers[broker].is_active and broker not in self._leaving

    @property
    def holds(self) -> bool:
        """Whether what was granted can still be so: others may have been heard since it was begun."""
        state, image = self._state, self._state.image
        if image is self.image and state.leaving == self._leaving:
            return True
        return (
            image.brokers == self.image.brokers
            and state.leaving == self._leaving
            and not any(name in image.topics or state.colliding(name) for name in self._created)
            and all(_is_as_large(image.topics.get(topic.name), topic) for topic in self._grown)
        )

    def take_records(self) -> list[MetadataRecord]:
        """Those that were not taken before."""
        records, self.records = self.records, []
        return records

    def grow(self, topic: Topic) -> None:
        """More partitions follow."""
        self._grown.append(topic)

    def add_topic(self, name: str, topic_id: Uuid, configs: Iterable[tuple[str, str]]) -> None:
        self.records.append(TopicRecord(name=name, topic_id=topic_id))
        for key, value in configs:
            record = ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=name, name=key, value=value)
            self.records.append(record)
        if can_collide(name):
            self._collisions[collision_key(name)] = name
        self._created.append(name)

    def add_partition(self, topic_id: Uuid, index: int, state: PartitionState) -> None:
        if self._load is None:
            self._load = self._state.load.copy()
        self.records.append(partition_record(topic_id, index, state))
        self._load.add(state.replicas)
        self.added += 1


def checked_assignments(image: Image, assignments: Sequence[tuple[int, list[BrokerId]]]) -> list[Replicas]:
    """The replicas that somebody chose by hand for a new topic, in order of partitions."""
    assigned: dict[int, Replicas] = {}
    factor: int | None = None
    for index, brokers in assignments:
        if index in assigned:
            raise _bad_assignment(f"Partition {index} is assigned more than once.")
        assigned[index] = checked_replicas(image, brokers, factor)
        factor = len(brokers)
    if sorted(assigned) != list(range(len(assigned))):
        raise _bad_assignment("Partitions have to be numbered 0, 1, 2, … without gaps.")
    return [assigned[index] for index in range(len(assigned))]


def checked_replicas(image: Image, brokers: Sequence[BrokerId], factor: int | None) -> Replicas:
    if not brokers:
        raise _bad_assignment("The assignment has a partition without replicas.")
    for broker in sorted(brokers):
        if broker not in image.brokers:
            raise _bad_assignment(f"The assignment names broker {broker}, which is not registered.")
    if len(set(brokers)) != len(brokers):
        raise _bad_assignment(f"The assignment names a broker more than once: {', '.join(map(str, brokers))}.")
    if factor is not None and len(brokers) != factor:
        raise _bad_assignment(
            f"The assignment has a partition of {len(brokers)} replica(s), where others have {factor}."
        )
    return tuple(brokers)


def _is_as_large(found: Topic | None, topic: Topic) -> bool:
    return found is not None and found.topic_id == topic.topic_id and len(found.partitions) == len(topic.partitions)


def _directory(image: Image, broker: BrokerId) -> Uuid:
    """A broker with one directory can only put it there."""
    directories = image.brokers[broker].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY


def _bad_assignment(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
