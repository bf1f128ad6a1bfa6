"""Topics are created, grow and are deleted. Each topic of a request is judged by itself, with Kafka's error codes.

A topic's records are its id, its settings and its partitions, in that order, and all topics of one request are one
batch: after a crash all of them are there or none.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from klamm.config import BrokerConfig
from klamm.controller.configs import Configs
from klamm.controller.creation import Creation, checked_assignments, checked_replicas
from klamm.controller.names import INTERNAL
from klamm.controller.placement import Replicas
from klamm.controller.state import State
from klamm.controller.wishes import (
    BROKERS_DEFAULT,
    CreatedTopic,
    DeletedTopic,
    GrownTopic,
    MorePartitions,
    NewTopic,
    TopicToDelete,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID, Uuid, drawn_uuid
from klamm.machine import Decision
from klamm.metadata.image import Image, Topic
from klamm.metadata.records import MetadataRecord, RemoveTopicRecord

# Kafka's limit as well: one request is one batch of the metadata log.
MAX_PARTITIONS_PER_REQUEST = 10_000


class Topics:
    """Decides about topics. Holds the defaults and nothing else: the state is the controller's."""

    def __init__(self, configs: Configs, config: BrokerConfig, random: Random) -> None:
        self._configs = configs
        self._default_partitions = config.integer("num.partitions")
        self._default_replication_factor = config.integer("default.replication.factor")
        self._deletion_enabled = config.boolean("delete.topic.enable")
        self._random = random

    def create(
        self, state: State, wishes: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[CreatedTopic]]:
        creation = Creation(state)
        total = sum(self._partitions_of(wish) for wish in wishes)
        times = Counter(wish.name for wish in wishes)
        results: dict[str, CreatedTopic] = {}
        for wish in wishes:
            try:
                _check_asked_once(times[wish.name])
                _check_not_too_many(total)
                results[wish.name] = self._create(creation, wish)
            except KafkaError as refused:
                results[wish.name] = CreatedTopic(wish.name, refused.code, refused.message)
        return Decision(list(results.values()), [] if validate_only else creation.records)

    def add_partitions(
        self, state: State, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Decision[MetadataRecord, list[GrownTopic]]:
        creation = Creation(state)
        times = Counter(wish.name for wish in wishes)
        results: dict[str, GrownTopic] = {}
        for wish in wishes:
            results[wish.name] = GrownTopic(wish.name)
            try:
                _check_asked_once(times[wish.name])
                self._add_partitions(creation, wish)
            except KafkaError as refused:
                results[wish.name] = GrownTopic(wish.name, refused.code, refused.message)
        return Decision(list(results.values()), [] if validate_only else creation.records)

    def delete(self, image: Image, wishes: Sequence[TopicToDelete]) -> Decision[MetadataRecord, list[DeletedTopic]]:
        names = Counter(wish.name for wish in wishes if wish.name is not None)
        ids = Counter(wish.topic_id for wish in wishes if wish.topic_id != ZERO_UUID)
        records: list[MetadataRecord] = []
        results: dict[tuple[str | None, Uuid], DeletedTopic] = {}
        for wish in wishes:
            result = results[wish.name, wish.topic_id] = DeletedTopic(wish.name, wish.topic_id)
            try:
                if not self._deletion_enabled:
                    raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false.")
                topic = _topic_to_delete(image, wish)
                _check_asked_once(names[topic.name] + ids[topic.topic_id])
                result.name, result.topic_id = topic.name, topic.topic_id
                records.append(RemoveTopicRecord(topic_id=topic.topic_id))
            except KafkaError as refused:
                result.error, result.message = refused.code, refused.message
        return Decision(list(results.values()), records)

    def _create(self, creation: Creation, wish: NewTopic) -> CreatedTopic:
        creation.check_name(wish.name)
        configs = self._configs.checked_for_creation(creation.image, wish.configs)
        replicas = self._replicas_of(creation, wish)
        states = [creation.partition(index, each) for index, each in enumerate(replicas)]
        topic_id = drawn_uuid(self._random)
        creation.add_topic(wish.name, topic_id, configs)
        creation.add_partitions(topic_id, 0, states)
        return CreatedTopic(wish.name, topic_id=topic_id, partitions=len(replicas), replication_factor=len(replicas[0]))

    def _replicas_of(self, creation: Creation, wish: NewTopic) -> list[Replicas]:
        factor = wish.replication_factor
        if wish.assignments:
            if factor != BROKERS_DEFAULT or wish.partitions != BROKERS_DEFAULT:
                reason = "Where replicas are assigned, the numbers of partitions and replicas have to be -1."
                raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
            return checked_assignments(creation.image, wish.assignments)
        if factor < 1 and factor != BROKERS_DEFAULT:
            reason = "Replication factor must be larger than 0, or -1 for the broker's default."
            raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
        if wish.partitions < 1 and wish.partitions != BROKERS_DEFAULT:
            reason = "Number of partitions must be larger than 0, or -1 for the broker's default."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        if factor == BROKERS_DEFAULT:
            factor = self._default_replication_factor
        return creation.place(self._partitions_of(wish), factor)

    def _add_partitions(self, creation: Creation, wish: MorePartitions) -> None:
        topic = creation.image.topics.get(wish.name)
        if topic is None:
            raise _unknown_topic()
        if wish.name in INTERNAL:
            reason = (
                f"{wish.name} is the brokers' own: with more partitions groups would look for their offsets elsewhere."
            )
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        first = topic.partitions[0]
        # While it is being reassigned it has replicas that will go.
        have, factor = len(topic.partitions), len(first.replicas) - len(first.removing)
        more = wish.count - have
        if more <= 0:
            reason = f"Topic {wish.name} has {have} partition(s); {wish.count} would not be more."
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        _check_not_too_many(more + len(creation.records))
        if wish.assignments is None:
            replicas = creation.place(more, factor, [state.replicas for state in topic.partitions])
        elif len(wish.assignments) == more:
            replicas = [checked_replicas(creation.image, each, factor) for each in wish.assignments]
        else:
            reason = f"{more} new partition(s), but {len(wish.assignments)} assignment(s) were given."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        states = [creation.partition(index, each) for index, each in enumerate(replicas, have)]
        creation.add_partitions(topic.topic_id, have, states)

    def _partitions_of(self, wish: NewTopic) -> int:
        if wish.assignments:
            return len(wish.assignments)
        return self._default_partitions if wish.partitions == BROKERS_DEFAULT else max(wish.partitions, 0)


def _check_asked_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name or id: name each topic once.")


def _check_not_too_many(partitions: int) -> None:
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        reason = f"{partitions} partitions in one request; at most {MAX_PARTITIONS_PER_REQUEST} are allowed."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


def _topic_to_delete(image: Image, wish: TopicToDelete) -> Topic:
    if (wish.name is None) == (wish.topic_id == ZERO_UUID):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is named by its name or by its id, one of the two.")
    if wish.name is not None:
        topic = image.topics.get(wish.name)
        if topic is None:
            raise _unknown_topic()
        return topic
    topic = image.topic_with_id(wish.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return topic


def _unknown_topic() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
