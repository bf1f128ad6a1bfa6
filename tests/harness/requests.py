"""The requests that tests make over and over, for one partition of one topic, and the one part of the answer."""

from collections.abc import Mapping
from typing import Any

from klamm.errors import ErrorCode
from klamm.records.batch import batches
from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from klamm.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS

LATEST, EARLIEST = -1, -2


def batch_of(
    *values: bytes | None,
    key: bytes | None = b"key",
    timestamp: int = FIRST_TIMESTAMP_MS,
    codec: int = 0,
    **fields: Any,
) -> bytearray:
    """A batch of these values, its header's fields as `BatchBuilder` takes them."""
    builder = BatchBuilder(codec=codec, **fields)
    for value in values:
        builder.append(key, value, timestamp)
    return builder.build()


def create(
    raw: Raw, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, usable: bool = True
) -> bytes:
    """Creates a topic, waits until it can be used, and gives its id."""
    configs = [CreatableTopicConfig(name, value) for name, value in sorted((config or {}).items())]
    wish = CreatableTopic(topic, num_partitions=partitions, replication_factor=-1, configs=configs)
    (result,) = raw.call("CreateTopics", 7, CreateTopicsRequest([wish], timeout_ms=20_000)).topics
    assert result.error_code == 0, (result.error_code, result.error_message)
    if usable:
        for partition in range(partitions):
            wait_until(lambda p=partition: offset_at(raw, topic, LATEST, p).error_code == 0, f"{topic} can be used")  # type: ignore[misc]
    topic_id: bytes = result.topic_id
    return topic_id


def produce(
    raw: Raw, topic: str, records: Any, *, partition: int = 0, acks: int = -1, version: int = 11
) -> PartitionProduceResponse:
    (answer,) = raw.call("Produce", version, produce_request(topic, records, partition, acks)).responses
    (part,) = answer.partition_responses
    assert isinstance(part, PartitionProduceResponse)
    return part


def produce_request(topic: str | bytes, records: Any, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """To a topic by its name, or by its id where the version has ids."""
    data = TopicProduceData(partition_data=[PartitionProduceData(partition, records)])
    if isinstance(topic, str):
        data.name = topic
    else:
        data.topic_id = topic
    return ProduceRequest(acks=acks, timeout_ms=20_000, topic_data=[data])


def fetch(raw: Raw, topic: str | bytes, offset: int, *, version: int = 12, **fields: Any) -> PartitionData:
    """One partition from an offset on, without waiting unless `max_wait_ms` says so."""
    answer = raw.call("Fetch", version, fetch_request(topic, offset, **fields))
    assert answer.error_code == 0, answer.error_code
    (found,) = answer.responses
    (part,) = found.partitions
    assert isinstance(part, PartitionData)
    return part


def fetch_request(
    topic: str | bytes,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 1_000_000,
    leader_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    part = FetchPartition(partition, leader_epoch, offset, partition_max_bytes=partition_max_bytes)
    asked = FetchTopic(partitions=[part])
    if isinstance(topic, str):
        asked.topic = topic
    else:
        asked.topic_id = topic
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[asked], **fields)


def offset_at(
    raw: Raw, topic: str, timestamp: int, partition: int = 0, *, version: int = 9, leader_epoch: int = -1
) -> ListOffsetsPartitionResponse:
    part = ListOffsetsPartition(partition, leader_epoch, timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic, [part])], timeout_ms=10_000)
    (found,) = raw.call("ListOffsets", version, request).topics
    (answer,) = found.partitions
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer


def metadata_of(raw: Raw, topic: str, *, version: int = 12, auto_create: bool = False) -> MetadataResponseTopic:
    request = MetadataRequest([MetadataRequestTopic(name=topic)], allow_auto_topic_creation=auto_create)
    (found,) = raw.call("Metadata", version, request).topics
    assert isinstance(found, MetadataResponseTopic)
    return found


def new_producer_id(raw: Raw) -> int:
    """An idempotent producer's id; its epoch is 0. Asks again while a broker is still fetching a block of ids."""
    given: list[InitProducerIdResponse] = []

    def is_given() -> bool:
        answer = raw.call("InitProducerId", 4, InitProducerIdRequest(None, transaction_timeout_ms=2**31 - 1))
        given.append(answer)
        return bool(answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    wait_until(is_given, "a producer id is given")
    assert (given[-1].error_code, given[-1].producer_epoch) == (0, 0)
    return given[-1].producer_id


def values_in(raw: Raw, topic: str, partition: int = 0) -> list[bytes | None]:
    """Everything in a small partition, in order."""
    data = bytes(fetch(raw, topic, 0, partition=partition, partition_max_bytes=50_000_000).records or b"")
    view = memoryview(data)
    return [record.value for at, batch in batches(data) for record in records_of(view[at : at + batch.size_bytes])]
