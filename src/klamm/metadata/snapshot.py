"""An image as records again: replayed into nothing, they add up to the same image.

That is what a snapshot of the metadata holds. Records come in an order in which each can be replayed: features,
brokers, topics with their partitions, settings, producer ids.
"""

from collections.abc import Iterator

from klamm.ids import NO_BROKER
from klamm.metadata.image import Broker, Image
from klamm.metadata.partitions import partition_record
from klamm.metadata.records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)


def records_of(image: Image) -> Iterator[MetadataRecord]:
    for name, level in sorted(image.features.items()):
        yield FeatureLevelRecord(name=name, feature_level=level)
    for _, broker in sorted(image.brokers.items()):
        yield _registration(broker)
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, state in enumerate(topic.partitions):
            yield partition_record(topic.topic_id, index, state)
    for resource, values in image.configs.items():
        for name, value in sorted(values.items()):
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=NO_BROKER, next_producer_id=image.next_producer_id)


def _registration(broker: Broker) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=each.minimum, max_supported_version=each.maximum)
            for name, each in sorted(broker.features.items())
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories),
    )
