"""A client that hides nothing: one connection, one request at a time, no retry, no back-off of its own.

What it asks, it asks in versions that both Klamm and Apache Kafka 4.3 speak.
"""

import socket
from collections.abc import Sequence
from struct import Struct
from typing import Any

from klamm.codec.compiler import decode
from klamm.errors import ErrorCode
from klamm.records.batch import batches, intact
from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from klamm.wire.apis import API_BY_KEY, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header
from klamm.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from klamm.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

API = {api.name: api for api in API_BY_KEY.values()}
VERSION = {"Produce": 12, "Fetch": 12, "Metadata": 12, "CreateTopics": 7, "DescribeQuorum": 2}
MEBIBYTE = 1 << 20
ALL = -1
ELEMENTS = 4_000_000

_size = Struct(">i")


class Line:
    def __init__(self, port: int, timeout_seconds: float = 10.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._asked = 0

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, name: str, request: object) -> Any:
        """OSError where nobody answers."""
        api, version = API[name], VERSION[name]
        self._asked += 1
        self.socket.sendall(b"".join(map(bytes, encoded_request(api, version, self._asked, "proof", request))))
        (size,) = _size.unpack(self._exactly(4))
        frame = memoryview(self._exactly(size))
        correlation_id, position = read_response_header(api, version, frame)
        assert correlation_id == self._asked, "answers come in the order of the requests"
        return decode(response_type(api.key), version, frame[position:], budget=ELEMENTS)

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            more = self.socket.recv(min(count - len(received), MEBIBYTE))
            if not more:
                raise ConnectionResetError("the connection was closed")
            received += more
        return bytes(received)


def metadata(line: Line, topic: str) -> Any:
    """What this broker knows of the topic: `error_code` and `partitions`."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return line.ask("Metadata", request).topics[0]


def leader_and_ports(line: Line, topic: str) -> tuple[dict[int, int], int]:
    """Where the brokers listen, and which of them leads the topic's first partition."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    answer = line.ask("Metadata", request)
    return {each.node_id: each.port for each in answer.brokers}, int(answer.topics[0].partitions[0].leader_id)


def create_topic(
    line: Line,
    topic: str,
    partitions: int,
    replicas: int,
    assignment: Sequence[int] | None = None,
    timeout_ms: int = 10_000,
    **settings: str,
) -> int:
    """The error code. Settings with underscores for dots; `assignment` places the only partition."""
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=replicas, configs=configs)
    if assignment is not None:
        wanted.num_partitions = wanted.replication_factor = -1
        wanted.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=list(assignment))]
    answer = line.ask("CreateTopics", CreateTopicsRequest(topics=[wanted], timeout_ms=timeout_ms))
    return int(answer.topics[0].error_code)


def produce(line: Line, topic: str, partition: int, value: bytes, acks: int = ALL, timeout_ms: int = 2_000) -> int:
    """One record; the error code."""
    builder = BatchBuilder()
    builder.append(None, value, 0)
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=builder.build())])
    answer = line.ask("Produce", ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data]))
    return int(answer.responses[0].partition_responses[0].error_code)


def read_all(line: Line, topic: str, partition: int) -> list[bytes]:
    """All that consumers may see of a partition, from its beginning to the high watermark, every checksum checked."""
    offset, values = 0, []
    while True:
        answer = _fetched(line, topic, partition, offset)
        if answer.error_code:
            raise ConnectionError(f"fetch of {topic}-{partition}: {ErrorCode(answer.error_code).name}")
        data = memoryview(bytes(answer.records or b""))
        for position, batch in batches(data):
            view = data[position : position + batch.size_bytes]
            intact(view)
            assert batch.base_offset == offset, f"{topic}-{partition} goes from {offset} to {batch.base_offset}"
            values += [record.value or b"" for record in records_of(view)]
            offset = batch.next_offset
        assert offset == len(values), "one record an offset"
        if offset >= answer.high_watermark:
            return values


def quorum(line: Line) -> Any:
    """`leader_id`, `leader_epoch`, `high_watermark`, `current_voters`, `observers` as DescribeQuorum tells them."""
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    return line.ask("DescribeQuorum", request).topics[0].partitions[0]


def _fetched(line: Line, topic: str, partition: int, offset: int) -> Any:
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=8 * MEBIBYTE)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=8 * MEBIBYTE, topics=[FetchTopic(topic=topic, partitions=[wanted])]
    )
    return line.ask("Fetch", request).responses[0].partitions[0]
