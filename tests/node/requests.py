"""What clients of these tests say, in few words, and what they make of the answers."""

from collections.abc import Iterable, Sequence
from typing import Any

from klamm.errors import ErrorCode
from klamm.records.batch import batches, intact
from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.node.world import BEGINNING, Client

NAMED = 12
"""The last version of Produce and Fetch in which topics have names."""

ALL = -1
EARLIEST, LATEST = -2, -1
MEBIBYTE = 1 << 20


def batch_of(
    *values: bytes | None,
    keys: Sequence[bytes | None] | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    timestamp: int = BEGINNING.wall_ms,
) -> bytearray:
    """A batch; `producer` is its id, epoch and first sequence."""
    builder = BatchBuilder(producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2])
    for number, value in enumerate(values):
        builder.append(keys[number] if keys is not None else None, value, timestamp)
    return builder.build()


# Topics.


def create(client: Client, name: str, partitions: int = 1, /, **configs: str) -> bytes:
    """A new topic; its id. Settings with underscores for dots."""
    answer = client.ask(creation(name, partitions, **configs))
    assert answer.topics[0].error_code == ErrorCode.NONE, answer.topics[0].error_message
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def creation(name: str, partitions: int = 1, /, **configs: str) -> CreateTopicsRequest:
    settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    return CreateTopicsRequest(topics=[topic], timeout_ms=5_000)


def deletion(name: str, timeout_ms: int = 5_000) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=timeout_ms)


def delete(client: Client, name: str) -> None:
    answer = client.ask(deletion(name))
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message


def metadata(*names: str, create_missing: bool = False) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=create_missing)


def leader_epoch(client: Client, topic: str, index: int = 0) -> int:
    (described,) = client.ask(metadata(topic)).topics
    assert described.error_code == ErrorCode.NONE
    epoch: int = described.partitions[index].leader_epoch
    return epoch


# Writing.


def produce(
    topic: str | bytes, *values: bytes, index: int = 0, acks: int = ALL, batch: bytearray | None = None
) -> ProduceRequest:
    """By name, for versions up to `NAMED`, or by id, for later ones. `batch` instead of values if it is special."""
    return produce_to([(topic, index)], *values, acks=acks, batch=batch)


def produce_to(
    targets: Iterable[tuple[str | bytes, int]], *values: bytes, acks: int = ALL, batch: bytearray | None = None
) -> ProduceRequest:
    """The same to several partitions in one request."""
    topics = []
    for topic, index in targets:
        records = batch_of(*values) if batch is None else batch
        data = TopicProduceData(partition_data=[PartitionProduceData(index=index, records=records)])
        if isinstance(topic, str):
            data.name = topic
        else:
            data.topic_id = topic
        topics.append(data)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def send(client: Client, topic: str, *values: bytes, index: int = 0, acks: int = ALL) -> int:
    """Produce, and expect to hear that it is safe; the offset."""
    answer = acknowledged(client.ask(produce(topic, *values, index=index, acks=acks), NAMED))
    assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
    offset: int = answer.base_offset
    return offset


def acknowledged(response: Any) -> Any:
    """What a produce response says about its only partition."""
    ((only,),) = ([*topic.partition_responses] for topic in response.responses)
    return only


def producer_id(client: Client) -> int:
    answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
    assert answer.error_code == ErrorCode.NONE and answer.producer_epoch == 0
    identity: int = answer.producer_id
    return identity


# Reading.


def fetch(
    topic: str | bytes,
    offset: int = 0,
    *,
    index: int = 0,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 * MEBIBYTE,
) -> FetchRequest:
    """From one partition, without a session."""
    return fetch_of([(topic, index, offset)], wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes)


def fetch_of(
    positions: Iterable[tuple[str | bytes, int, int]] = (),
    *,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[tuple[str | bytes, int]] = (),
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 * MEBIBYTE,
) -> FetchRequest:
    """Positions are topic, partition and offset; `session` is an id and an epoch."""
    topics: dict[str | bytes, FetchTopic] = {}
    for topic, index, offset in positions:
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        topics.setdefault(topic, _named(FetchTopic(partitions=[]), topic)).partitions.append(wanted)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=list(topics.values()),
        forgotten_topics_data=[_named(ForgottenTopic(partitions=[index]), topic) for topic, index in forgotten],
    )


def _named(entry: Any, topic: str | bytes) -> Any:
    if isinstance(topic, str):
        entry.topic = topic
    else:
        entry.topic_id = topic
    return entry


def fetched(response: Any) -> Any:
    """What a fetch response says about its only partition."""
    assert response.error_code == ErrorCode.NONE
    ((only,),) = ([*topic.partitions] for topic in response.responses)
    return only


def values_in(partition: Any) -> list[bytes]:
    """The records' values. Every batch's checksum is right, and offsets follow one another."""
    data = memoryview(bytes(partition.records or b""))
    found, expected = [], None
    for position, batch in batches(data):
        view = data[position : position + batch.size_bytes]
        intact(view)
        assert expected is None or batch.base_offset >= expected
        expected = batch.next_offset
        found += [record.value or b"" for record in records_of(view)]
    return found


def read_all(client: Client, topic: str, index: int = 0) -> list[bytes]:
    """Every record's value, from the beginning of the partition to its end."""
    offset, end = offsets(client, topic, index)
    values = []
    while offset < end:
        data = memoryview(bytes(fetched(client.ask(fetch(topic, offset, index=index), NAMED)).records))
        assert data, f"nothing at offset {offset}, though {topic} ends at {end}"
        for position, batch in batches(data):
            view = data[position : position + batch.size_bytes]
            intact(view)
            assert batch.next_offset > offset
            values += [record.value or b"" for record in records_of(view) if record.offset >= offset]
            offset = batch.next_offset
    return values


def offsets(client: Client, topic: str, index: int = 0) -> tuple[int, int]:
    """Where a partition begins and ends, as a consumer is told."""
    earliest, latest = (_listed(client, topic, index, each) for each in (EARLIEST, LATEST))
    return earliest, latest


def _listed(client: Client, topic: str, index: int, timestamp: int) -> int:
    partition = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    answer = client.ask(
        ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
    )
    ((only,),) = ([*each.partitions] for each in answer.topics)
    assert only.error_code == ErrorCode.NONE, ErrorCode(only.error_code).name
    offset: int = only.offset
    return offset


def delete_records(topic: str, before: int, index: int = 0) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=index, offset=before)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=1_000)
