"""Random histories of a cluster, as records, and the cluster a beginner would compute from them.

`Twin` replays everything into plain dicts, one record at a time, in the words of the records' own documentation.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from klamm.ids import drawn_uuid
from klamm.metadata.image import Image
from klamm.metadata.records import (
    SAME_LEADER,
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


@dataclass
class Twin:
    topics: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, dict[str, Any]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    next_producer_id: int = 0

    def replay(self, record: MetadataRecord) -> None:
        match record:
            case TopicRecord():
                self.topics[record.topic_id] = {"name": record.name, "partitions": {}}
            case PartitionRecord():
                self.topics[record.topic_id]["partitions"][record.partition_id] = {
                    "replicas": record.replicas,
                    "isr": record.isr,
                    "leader": record.leader,
                    "leader_epoch": record.leader_epoch,
                    "partition_epoch": record.partition_epoch,
                    "recovering": record.leader_recovery_state == 1,
                    "elr": record.eligible_leader_replicas or [],
                }
            case PartitionChangeRecord():
                partition = self.topics[record.topic_id]["partitions"][record.partition_id]
                partition["partition_epoch"] += 1
                if record.isr is not None:
                    partition["isr"] = record.isr
                if record.replicas is not None:
                    partition["replicas"] = record.replicas
                if record.eligible_leader_replicas is not None:
                    partition["elr"] = record.eligible_leader_replicas
                if record.leader_recovery_state != -1:
                    partition["recovering"] = record.leader_recovery_state == 1
                if record.leader != SAME_LEADER:
                    partition["leader"] = record.leader
                    partition["leader_epoch"] += 1
            case RemoveTopicRecord():
                name = self.topics.pop(record.topic_id)["name"]
                self.configs.pop((2, name), None)
            case ConfigRecord():
                values = self.configs.setdefault((record.resource_type, record.resource_name), {})
                if record.value is None:
                    values.pop(record.name, None)
                else:
                    values[record.name] = record.value
                if not values:
                    del self.configs[record.resource_type, record.resource_name]
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case RegisterBrokerRecord():
                self.brokers[record.broker_id] = {
                    "epoch": record.broker_epoch,
                    "rack": record.rack,
                    "fenced": record.fenced,
                    "in_controlled_shutdown": record.in_controlled_shutdown,
                }
            case BrokerRegistrationChangeRecord():
                broker = self.brokers[record.broker_id]
                if record.fenced:
                    broker["fenced"] = record.fenced == 1
                if record.in_controlled_shutdown:
                    broker["in_controlled_shutdown"] = True
            case UnregisterBrokerRecord():
                del self.brokers[record.broker_id]
            case FeatureLevelRecord():
                self.features[record.name] = record.feature_level
                if not record.feature_level:
                    del self.features[record.name]
            case NoOpRecord():
                pass

    def has_become(self, image: Image) -> None:
        """Assert that the image says the same."""
        assert dict(image.topic_names) == {topic_id: topic["name"] for topic_id, topic in self.topics.items()}
        assert sorted(image.topics) == sorted(topic["name"] for topic in self.topics.values())
        for topic_id, twin in self.topics.items():
            topic = image.topic_with_id(topic_id)
            assert topic is not None and topic is image.topics[twin["name"]] and topic.topic_id == topic_id
            assert len(topic.partitions) == len(twin["partitions"])
            for index, state in enumerate(topic.partitions):
                told = {key: getattr(state, key) for key in twin["partitions"][index]}
                assert {key: list(v) if isinstance(v, tuple) else v for key, v in told.items()} == twin["partitions"][
                    index
                ]
                assert len(state.directories) == len(state.replicas)
        assert {tuple(resource): dict(values) for resource, values in image.configs.items()} == self.configs
        assert list(image.brokers) == sorted(self.brokers)
        for broker_id, expected in self.brokers.items():
            assert {key: getattr(image.brokers[broker_id], key) for key in expected} == expected
        assert image.features == self.features
        assert image.next_producer_id == self.next_producer_id


def drawn_history(random: Random, length: int) -> list[MetadataRecord]:
    """A history that could have happened."""
    twin, records = Twin(), list[MetadataRecord]()
    for _ in range(length):
        record = _drawn_record(random, twin)
        twin.replay(record)
        records.append(record)
    return records


def _drawn_record(random: Random, twin: Twin) -> MetadataRecord:
    wish = random.choice(["topic", "partition", "partition", "change", "change", "remove", "config", "broker", "rest"])
    brokers = random.sample(range(5), random.randint(1, 4))
    if wish == "topic" or not twin.topics:
        free = [name for name in "abcdefgh" if name not in {topic["name"] for topic in twin.topics.values()}]
        return TopicRecord(name=random.choice(free), topic_id=drawn_uuid(random)) if free else NoOpRecord()
    topic_id = random.choice(sorted(twin.topics))
    partitions = twin.topics[topic_id]["partitions"]
    if wish == "partition" or (wish == "change" and not partitions):
        return PartitionRecord(
            partition_id=len(partitions),
            topic_id=topic_id,
            replicas=brokers,
            isr=brokers[: random.randint(1, len(brokers))],
            leader=brokers[0],
            leader_epoch=random.randint(0, 3),
            partition_epoch=random.randint(0, 3),
            leader_recovery_state=random.randint(0, 1),
            directories=[bytes([broker]) * 16 for broker in brokers],
            eligible_leader_replicas=random.choice([None, brokers[1:]]),
        )
    if wish == "change":
        return PartitionChangeRecord(
            partition_id=random.randrange(len(partitions)),
            topic_id=topic_id,
            isr=random.choice([None, brokers]),
            leader=random.choice([SAME_LEADER, -1, brokers[0]]),
            replicas=random.choice([None, None, brokers]),
            leader_recovery_state=random.choice([-1, 0, 1]),
            eligible_leader_replicas=random.choice([None, [], brokers[1:]]),
        )
    if wish == "remove":
        return RemoveTopicRecord(topic_id=topic_id)
    if wish == "config":
        kind, name = random.choice([(2, twin.topics[topic_id]["name"]), (4, ""), (4, "1")])
        values = twin.configs.get((kind, name), {})
        if values and random.random() < 0.4:
            return ConfigRecord(resource_type=kind, resource_name=name, name=random.choice(sorted(values)), value=None)
        return ConfigRecord(resource_type=kind, resource_name=name, name=random.choice("xyz"), value="1")
    if wish == "broker":
        return _drawn_broker_record(random, twin)
    rest: list[MetadataRecord] = [
        NoOpRecord(),
        ProducerIdsRecord(next_producer_id=twin.next_producer_id + 1000),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
    ]
    return random.choice(rest + [FeatureLevelRecord(name=name, feature_level=0) for name in twin.features])


def _drawn_broker_record(random: Random, twin: Twin) -> MetadataRecord:
    broker_id = random.randrange(4)
    if broker_id not in twin.brokers or random.random() < 0.3:
        return RegisterBrokerRecord(
            broker_id=broker_id, broker_epoch=random.randrange(100), rack=random.choice([None, "R1"])
        )
    epoch = twin.brokers[broker_id]["epoch"]
    if random.random() < 0.3:
        return UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)
    return BrokerRegistrationChangeRecord(
        broker_id=broker_id,
        broker_epoch=epoch,
        fenced=random.choice([-1, 0, 1]),
        in_controlled_shutdown=random.choice([0, 0, 1]),
    )
