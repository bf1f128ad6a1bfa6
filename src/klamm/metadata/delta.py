"""From one image to the next: replay records, and know what changed.

A delta copies what it writes once, however many records write it, and shares the rest with the image it came from. So
one record costs little, and so does a whole log of them replayed into one delta. What changed is told in names; the
values before and after are in the two images.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from klamm.ids import BrokerId, Epoch, Offset, TopicPartition, Uuid
from klamm.machine import completed
from klamm.metadata.buckets import Buckets, BucketsDraft
from klamm.metadata.image import (
    Broker,
    ConfigResource,
    Endpoint,
    FeatureRange,
    Image,
    PartitionState,
    ResourceType,
    Topic,
)
from klamm.metadata.partitions import changed_partition, new_partition
from klamm.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)


@dataclass(slots=True)
class Changes:
    """What a delta changed, in order of names. A topic deleted and created again stands in both lists, with two ids.

    `partitions_changed` names partitions, old and added, of topics that were there before and still are.
    """

    topics_created: list[Topic] = field(default_factory=list)
    topics_deleted: list[Topic] = field(default_factory=list)
    partitions_changed: list[TopicPartition] = field(default_factory=list)
    configs_changed: list[ConfigResource] = field(default_factory=list)
    brokers_changed: list[BrokerId] = field(default_factory=list)
    features_changed: bool = False


@dataclass(slots=True)
class _TopicDraft:
    name: str
    topic_id: Uuid
    partitions: list[PartitionState]
    is_new: bool
    changed: set[int] = field(default_factory=set)


class Delta:
    __slots__ = ("_brokers", "_configs", "_deleted", "_drafts", "_features", "_next_producer_id", "base")

    def __init__(self, base: Image) -> None:
        self.base = base
        self._drafts: dict[Uuid, _TopicDraft] = {}
        self._deleted: dict[Uuid, Topic] = {}
        self._configs: dict[ConfigResource, dict[str, str]] = {}
        self._brokers: dict[BrokerId, Broker | None] = {}
        self._features: dict[str, int] = {}
        self._next_producer_id = base.next_producer_id

    def replay(self, record: MetadataRecord) -> None:
        _REPLAY[type(record)](self, record)

    def topic(self, topic_id: Uuid) -> Topic | None:
        """A topic as it is by now, for those who count along while they replay."""
        draft = self._drafts.get(topic_id)
        if draft is not None:
            return Topic(draft.name, draft.topic_id, tuple(draft.partitions))
        return None if topic_id in self._deleted else self.base.topic_with_id(topic_id)

    def partition(self, topic_id: Uuid, index: int) -> PartitionState:
        draft = self._drafts.get(topic_id)
        topic = draft or self.base.topic_with_id(topic_id)
        assert topic is not None, "a partition of a topic that does not exist"
        return topic.partitions[index]

    def add_topic(self, name: str, topic_id: Uuid) -> None:
        """As a TopicRecord does."""
        assert topic_id not in self._drafts, f"topic {name} was created twice"
        self._drafts[topic_id] = _TopicDraft(name, topic_id, [], is_new=True)

    def add_partitions(self, topic_id: Uuid, partitions: Iterable[tuple[int, PartitionState]]) -> None:
        """As so many PartitionRecords do."""
        draft = self._draft(topic_id)
        for index, state in partitions:
            assert index == len(draft.partitions), f"{draft.name} has a gap before {index}"
            draft.partitions.append(state)
            draft.changed.add(index)

    def finished(self, offset: Offset, epoch: Epoch) -> tuple[Image, Changes]:
        """The image of everything up to `offset`, and what is different in it."""
        return completed(self.finishing(offset, epoch))

    def finishing(self, offset: Offset, epoch: Epoch) -> Generator[None, None, tuple[Image, Changes]]:
        """The same, pausing after each topic: many may have changed."""
        changes = Changes(
            topics_deleted=sorted(self._deleted.values(), key=lambda topic: topic.name),
            brokers_changed=sorted(self._brokers),
            features_changed=bool(self._features),
        )
        topics, names = yield from self._next_topics(changes)
        changes.configs_changed = [
            resource
            for resource in sorted(self._configs)
            if resource.type != ResourceType.TOPIC or resource.name in topics
        ]
        image = Image(
            offset=offset,
            epoch=epoch,
            topics=topics,
            topic_names=names,
            brokers=self._next_brokers(),
            configs=self._next_configs(),
            features={n: level for n, level in sorted({**self.base.features, **self._features}.items()) if level},
            next_producer_id=self._next_producer_id,
        )
        return image, changes

    # One method a record.

    def _topic_record(self, record: TopicRecord) -> None:
        self.add_topic(record.name, record.topic_id)

    def _partition_record(self, record: PartitionRecord) -> None:
        self.add_partitions(record.topic_id, ((record.partition_id, new_partition(record)),))

    def _partition_change_record(self, record: PartitionChangeRecord) -> None:
        draft = self._draft(record.topic_id)
        draft.partitions[record.partition_id] = changed_partition(draft.partitions[record.partition_id], record)
        draft.changed.add(record.partition_id)

    def _remove_topic_record(self, record: RemoveTopicRecord) -> None:
        draft = self._drafts.pop(record.topic_id, None)
        topic = self.base.topic_with_id(record.topic_id)
        gone = draft or topic
        assert gone is not None, "a topic that does not exist was removed"
        if topic is not None:
            self._deleted[record.topic_id] = topic
        # Its settings go with it, so that a topic of the same name starts afresh.
        self._configs[ConfigResource(ResourceType.TOPIC, gone.name)] = {}

    def _config_record(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        values = self._configs.get(resource)
        if values is None:
            values = self._configs[resource] = dict(self.base.config_of(resource))
        if record.value is None:
            values.pop(record.name, None)
        else:
            values[record.name] = record.value

    def _producer_ids_record(self, record: ProducerIdsRecord) -> None:
        assert record.next_producer_id >= self._next_producer_id, "producer ids go forward"
        self._next_producer_id = record.next_producer_id

    def _register_broker_record(self, record: RegisterBrokerRecord) -> None:
        self._brokers[record.broker_id] = Broker(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features={f.name: FeatureRange(f.min_supported_version, f.max_supported_version) for f in record.features},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
        )

    def _unregister_broker_record(self, record: UnregisterBrokerRecord) -> None:
        self._brokers[record.broker_id] = None

    def _broker_registration_change_record(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._brokers.get(record.broker_id) or self.base.brokers[record.broker_id]
        assert broker.epoch == record.broker_epoch, f"broker {record.broker_id} was registered anew in between"
        self._brokers[record.broker_id] = replace(
            broker,
            fenced={FENCE: True, UNFENCE: False}.get(record.fenced, broker.fenced),
            in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            directories=tuple(record.log_dirs) or broker.directories,
        )

    def _feature_level_record(self, record: FeatureLevelRecord) -> None:
        self._features[record.name] = record.feature_level

    def _no_op_record(self, record: NoOpRecord) -> None:
        pass

    # The pieces of the next image.

    def _draft(self, topic_id: Uuid) -> _TopicDraft:
        draft = self._drafts.get(topic_id)
        if draft is None:
            topic = self.base.topic_with_id(topic_id)
            assert topic is not None and topic_id not in self._deleted, "a partition of a topic that does not exist"
            draft = _TopicDraft(topic.name, topic_id, list(topic.partitions), is_new=False)
            self._drafts[topic_id] = draft
        return draft

    def _next_topics(self, changes: Changes) -> Generator[None, None, tuple[Buckets[str, Topic], Buckets[Uuid, str]]]:
        if not self._drafts and not self._deleted:
            return self.base.topics, self.base.topic_names
        topics, names = BucketsDraft(self.base.topics), BucketsDraft(self.base.topic_names)
        for gone in changes.topics_deleted:
            topics.pop(gone.name)
            names.pop(gone.topic_id)
            yield
        for draft in sorted(self._drafts.values(), key=lambda draft: draft.name):
            topic = topics[draft.name] = Topic(draft.name, draft.topic_id, tuple(draft.partitions))
            if draft.is_new:
                names[draft.topic_id] = draft.name
                changes.topics_created.append(topic)
            else:
                changes.partitions_changed += [TopicPartition(draft.name, index) for index in sorted(draft.changed)]
            yield
        return topics.finished(), names.finished()

    def _next_brokers(self) -> dict[BrokerId, Broker]:
        brokers = {**self.base.brokers, **self._brokers}
        return {broker_id: broker for broker_id, broker in sorted(brokers.items()) if broker is not None}

    def _next_configs(self) -> Buckets[ConfigResource, Any]:
        if not self._configs:
            return self.base.configs
        configs = BucketsDraft(self.base.configs)
        for resource, values in self._configs.items():
            if values:
                configs[resource] = values
            else:
                configs.pop(resource)
        return configs.finished()


_REPLAY: dict[type[MetadataRecord], Callable[[Delta, Any], None]] = {
    TopicRecord: Delta._topic_record,
    PartitionRecord: Delta._partition_record,
    PartitionChangeRecord: Delta._partition_change_record,
    RemoveTopicRecord: Delta._remove_topic_record,
    ConfigRecord: Delta._config_record,
    ProducerIdsRecord: Delta._producer_ids_record,
    RegisterBrokerRecord: Delta._register_broker_record,
    UnregisterBrokerRecord: Delta._unregister_broker_record,
    BrokerRegistrationChangeRecord: Delta._broker_registration_change_record,
    FeatureLevelRecord: Delta._feature_level_record,
    NoOpRecord: Delta._no_op_record,
}
