"""One ordinary request for every API that one broker serves, in each version, and how to know a right answer."""

from collections.abc import Callable
from typing import Any, TypeAlias

from klamm.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.describe_cluster import DescribeClusterRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from klamm.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from klamm.wire.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from klamm.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.list_config_resources import ListConfigResourcesRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, create, fetch_request, metadata_of, new_producer_id, produce_request

TOPIC_RESOURCE = 2
Example: TypeAlias = Callable[[Raw, str, int], tuple[Any, Callable[[Any], bool]]]


def _produce(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    place = metadata_of(raw, topic).topic_id if version >= 13 else topic
    return produce_request(place, batch_of(b"more")), lambda a: a.responses[0].partition_responses[0].error_code == 0


def _fetch(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    place = metadata_of(raw, topic).topic_id if version >= 13 else topic
    return fetch_request(place, 0), lambda a: bytes(a.responses[0].partitions[0].records).endswith(b"a record\0")


def _list_offsets(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    part = ListOffsetsPartition(0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic, [part])], timeout_ms=5000)
    return request, lambda a: (a.topics[0].partitions[0].error_code, a.topics[0].partitions[0].offset) == (0, 1)


def _metadata(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    request = MetadataRequest([MetadataRequestTopic(name=topic)])
    return request, lambda a: (a.topics[0].error_code, a.topics[0].partitions[0].leader_id) == (0, 0)


def _api_versions(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    return ApiVersionsRequest("klamm-tests", "1"), lambda a: a.error_code == 0


def _find_coordinator(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    """Whoever asks first may have to ask again: the topic of the offsets is not there yet."""
    request = FindCoordinatorRequest(key="group", coordinator_keys=["group"])
    return request, lambda a: (a.coordinators[0] if version >= 4 else a).error_code in (0, 15)


def _create_topics(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    name = f"{topic}-v{version}"
    request = CreateTopicsRequest([CreatableTopic(name, num_partitions=2, replication_factor=1)], timeout_ms=10_000)
    return request, lambda a: (a.topics[0].name, a.topics[0].error_code) == (name, 0)


def _delete_topics(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    name = f"{topic}-v{version}"
    create(raw, name)
    request = DeleteTopicsRequest([DeleteTopicState(name)], [name], timeout_ms=10_000)
    return request, lambda a: (a.responses[0].name, a.responses[0].error_code) == (name, 0)


def _create_partitions(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    request = CreatePartitionsRequest([CreatePartitionsTopic(topic, version + 2, None)], timeout_ms=10_000)
    return request, lambda a: (a.results[0].name, a.results[0].error_code) == (topic, 0)


def _delete_records(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    wish = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 1)])
    return DeleteRecordsRequest([wish], timeout_ms=10_000), lambda a: a.topics[0].partitions[0].low_watermark == 1


def _init_producer_id(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    new_producer_id(raw)  # The very first answer may be that ids are on their way.
    request = InitProducerIdRequest(None, transaction_timeout_ms=2**31 - 1)
    return request, lambda a: a.error_code == 0 and a.producer_id >= 0 and a.producer_epoch == 0


def _offset_for_leader_epoch(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    epoch = metadata_of(raw, topic).partitions[0].leader_epoch
    part = OffsetForLeaderPartition(0, current_leader_epoch=epoch, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [part])])
    return request, lambda a: (a.topics[0].partitions[0].error_code, a.topics[0].partitions[0].end_offset) == (0, 1)


def _describe_configs(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, topic, ["retention.ms"])])
    return request, lambda a: [config.value for config in a.results[0].configs] == ["604800000"]


def _alter_configs(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    resource = AlterConfigsResource(TOPIC_RESOURCE, topic, [AlterableConfig("retention.ms", "1000000")])
    return AlterConfigsRequest([resource]), lambda a: a.responses[0].error_code == 0


def _incremental_alter_configs(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    resource = IncrementalResource(TOPIC_RESOURCE, topic, [IncrementalConfig("retention.ms", 0, "1000000")])
    return IncrementalAlterConfigsRequest([resource]), lambda a: a.responses[0].error_code == 0


def _describe_log_dirs(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])])
    return request, lambda a: a.results[0].topics[0].partitions[0].partition_size > 0


def _describe_cluster(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    return DescribeClusterRequest(), lambda a: (a.error_code, [broker.broker_id for broker in a.brokers]) == (0, [0])


def _describe_topic_partitions(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)])
    return request, lambda a: (a.topics[0].error_code, a.topics[0].partitions[0].leader_id) == (0, 0)


def _list_config_resources(raw: Raw, topic: str, version: int) -> tuple[Any, Callable[[Any], bool]]:
    """Version 0 knows of client metrics only, of which there are none."""
    names = [topic] if version else []
    request = ListConfigResourcesRequest([TOPIC_RESOURCE])
    return request, lambda a: [r.resource_name for r in a.config_resources if r.resource_name in (topic, "")] == names


EXAMPLES: dict[str, Example] = {
    "Produce": _produce,
    "Fetch": _fetch,
    "ListOffsets": _list_offsets,
    "Metadata": _metadata,
    "ApiVersions": _api_versions,
    "FindCoordinator": _find_coordinator,
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "CreatePartitions": _create_partitions,
    "DeleteRecords": _delete_records,
    "InitProducerId": _init_producer_id,
    "OffsetForLeaderEpoch": _offset_for_leader_epoch,
    "DescribeConfigs": _describe_configs,
    "AlterConfigs": _alter_configs,
    "IncrementalAlterConfigs": _incremental_alter_configs,
    "DescribeLogDirs": _describe_log_dirs,
    "DescribeCluster": _describe_cluster,
    "DescribeTopicPartitions": _describe_topic_partitions,
    "ListConfigResources": _list_config_resources,
}
