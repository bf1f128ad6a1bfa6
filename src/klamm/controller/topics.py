"""Topics are created, grow and are deleted. Each topic of a request is judged by itself, with Kafka's error codes.

A topic's records are its id, its settings and its partitions, in that order, and all topics of one request are one
batch: after a crash all of them are there or none.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

from klamm.config import BrokerConfig
from klamm.controller.changes import Pieces
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
from klamm.machine import Piece
from klamm.metadata.image import Image, PartitionState, Topic
from klamm.metadata.records import MetadataRecord, RemoveTopicRecord
from klamm.slicing import Pace, in_slices, is_slice

# Kafka's limit as well: one request is one batch of the metadata log.
MAX_PARTITIONS_PER_REQUEST = 10_000

Wish = TypeVar("Wish", NewTopic, MorePartitions)
Outcome = TypeVar("Outcome", CreatedTopic, GrownTopic)


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
    ) -> Pieces[list[CreatedTopic]]:
        total = 0
        times: Counter[str] = Counter()
        yield from _pause_before(wishes)
        for some, is_last in in_slices(wishes):
            for wish in some:
                total += self._partitions_of(wish)
                times[wish.name] += 1
            if not is_last:
                yield Piece()

        def grant(creation: Creation, wish: NewTopic, pace: Pace) -> Pieces[CreatedTopic]:
            _check_asked_once(times[wish.name])
            _check_not_too_many(total)
            return (yield from self._create(creation, wish, pace))

        return (yield from _grant_all(state, wishes, grant, CreatedTopic, validate_only))

    def add_partitions(
        self, state: State, wishes: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> Pieces[list[GrownTopic]]:
        yield from _pause_before(wishes)
        times = Counter(wish.name for wish in wishes)

        def grant(creation: Creation, wish: MorePartitions, pace: Pace) -> Pieces[GrownTopic]:
            _check_asked_once(times[wish.name])
            return (yield from self._add_partitions(creation, wish, pace))

        return (yield from _grant_all(state, wishes, grant, GrownTopic, validate_only))

    def delete(self, state: State, wishes: Sequence[TopicToDelete]) -> Pieces[list[DeletedTopic]]:
        """Each topic is a record of its own, and some hundred partitions are a batch."""
        yield from _pause_before(wishes)
        names = Counter(wish.name for wish in wishes if wish.name is not None)
        ids = Counter(wish.topic_id for wish in wishes if wish.topic_id != ZERO_UUID)
        results: dict[tuple[str | None, Uuid], DeletedTopic] = {}

        def size(wish: TopicToDelete) -> int:
            topic = _topic_meant(state.image, wish)
            return 1 if topic is None else len(topic.partitions)

        for some, is_last in in_slices(wishes, size):
            records: list[MetadataRecord] = []
            for wish in some:
                result = results[wish.name, wish.topic_id] = DeletedTopic(wish.name, wish.topic_id)
                try:
                    if not self._deletion_enabled:
                        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false.")
                    topic = _topic_to_delete(state.image, wish)
                    _check_asked_once(names[topic.name] + ids[topic.topic_id])
                    result.name, result.topic_id = topic.name, topic.topic_id
                    records.append(RemoveTopicRecord(topic_id=topic.topic_id))
                except KafkaError as refused:
                    result.error, result.message = refused.code, refused.message
            yield Piece(records, is_last=is_last)
        return list(results.values())

    def _create(self, creation: Creation, wish: NewTopic, pace: Pace) -> Pieces[CreatedTopic]:
        creation.check_name(wish.name)
        configs = self._configs.checked_for_creation(creation.image, wish.configs)
        states = yield from _states(creation, 0, self._replicas_of(creation, wish), pace)
        topic_id = drawn_uuid(self._random)
        creation.add_topic(wish.name, topic_id, configs)
        yield from _add(creation, topic_id, 0, states, pace)
        factor = len(states[0].replicas)
        return CreatedTopic(wish.name, topic_id=topic_id, partitions=len(states), replication_factor=factor)

    def _replicas_of(self, creation: Creation, wish: NewTopic) -> Iterable[Replicas]:
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

    def _add_partitions(self, creation: Creation, wish: MorePartitions, pace: Pace) -> Pieces[GrownTopic]:
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
        _check_not_too_many(more + creation.added)
        replicas: Iterable[Replicas]
        if wish.assignments is None:
            replicas = creation.place(more, factor, [state.replicas for state in topic.partitions])
        elif len(wish.assignments) == more:
            replicas = [checked_replicas(creation.image, each, factor) for each in wish.assignments]
        else:
            reason = f"{more} new partition(s), but {len(wish.assignments)} assignment(s) were given."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        states = yield from _states(creation, have, replicas, pace)
        creation.grow(topic)
        yield from _add(creation, topic.topic_id, have, states, pace)
        return GrownTopic(wish.name)

    def _partitions_of(self, wish: NewTopic) -> int:
        if wish.assignments:
            return len(wish.assignments)
        return self._default_partitions if wish.partitions == BROKERS_DEFAULT else max(wish.partitions, 0)


def _pause_before(wishes: Sequence[object]) -> Pieces[None]:
    """To read so many was enough for one step."""
    if is_slice(len(wishes)):
        yield Piece()


def _grant_all(
    state: State,
    wishes: Sequence[Wish],
    grant: Callable[[Creation, Wish, Pace], Pieces[Outcome]],
    refusal: Callable[[str, ErrorCode, str | None], Outcome],
    validate_only: bool,
) -> Pieces[list[Outcome]]:
    """All that is granted is one batch. If what it rests on is not so any more when all is decided, because a broker
    came or went meanwhile, all of it is decided again."""
    while True:
        creation, pace = Creation(state), Pace()
        results: dict[str, Outcome] = {}
        for wish in wishes:
            try:
                results[wish.name] = yield from grant(creation, wish, pace)
            except KafkaError as refused:
                results[wish.name] = refusal(wish.name, refused.code, refused.message)
            if pace.is_full():
                yield Piece(creation.take_records(), ends_batch=False)
        if validate_only:
            yield Piece(is_void=True, is_last=True)
            return list(results.values())
        if creation.holds:
            yield Piece(creation.take_records(), is_last=True)
            return list(results.values())
        yield Piece(is_void=True)


def _states(creation: Creation, first: int, replicas: Iterable[Replicas], pace: Pace) -> Pieces[list[PartitionState]]:
    states = []
    for index, each in enumerate(replicas, first):
        states.append(creation.partition(index, each))
        if pace.is_full():
            yield Piece(creation.take_records(), ends_batch=False)
    return states


def _add(creation: Creation, topic_id: Uuid, first: int, states: Sequence[PartitionState], pace: Pace) -> Pieces[None]:
    for index, state in enumerate(states, first):
        creation.add_partition(topic_id, index, state)
        if pace.is_full():
            yield Piece(creation.take_records(), ends_batch=False)


def _check_asked_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name or id: name each topic once.")


def _check_not_too_many(partitions: int) -> None:
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        reason = f"{partitions} partitions in one request; at most {MAX_PARTITIONS_PER_REQUEST} are allowed."
        raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)


def _topic_meant(image: Image, wish: TopicToDelete) -> Topic | None:
    return image.topic_with_id(wish.topic_id) if wish.name is None else image.topics.get(wish.name)


def _topic_to_delete(image: Image, wish: TopicToDelete) -> Topic:
    if (wish.name is None) == (wish.topic_id == ZERO_UUID):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is named by its name or by its id, one of the two.")
    topic = _topic_meant(image, wish)
    if topic is None and wish.name is not None:
        raise _unknown_topic()
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    return topic


def _unknown_topic() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
