"""A small Kafka client on one socket, through `klamm.wire`: ask and wait, or post and collect the answers later."""

import socket
import struct
from collections import deque
from types import TracebackType
from typing import Any

from klamm.codec.compiler import decode_from
from klamm.errors import ErrorCode
from klamm.wire.apis import API_BY_KEY, Api, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PATIENCE_SECONDS = 20.0
NAMED = 12
"""The last version of Produce and Fetch in which topics have names."""

LATEST, EARLIEST = -1, -2
API_BY_NAME = {api.name: api for api in API_BY_KEY.values()}


class Lost(ConnectionError):  # noqa: N818
    """The broker is gone."""


class Client:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        self._asked: deque[tuple[Api, int, int]] = deque()
        self._correlation_id = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        self.post(request, version)
        return self.answer()

    def post(self, request: Any, version: int | None = None) -> None:
        api = API_BY_NAME[type(request).__name__.removesuffix("Request")]
        number = api.max_version if version is None else version
        self._correlation_id += 1
        self._asked.append((api, number, self._correlation_id))
        frame = b"".join(map(bytes, encoded_request(api, number, self._correlation_id, "test", request)))
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise Lost(str(error)) from error

    def answer(self) -> Any:
        """To the oldest request that has none yet."""
        api, version, correlation_id = self._asked.popleft()
        frame = self._exactly(*struct.unpack(">i", self._exactly(4)))
        got, position = read_response_header(api, version, frame)
        assert got == correlation_id
        response, _ = decode_from(response_type(api.key), version, frame, position)
        return response

    @property
    def unanswered(self) -> int:
        return len(self._asked)

    def _exactly(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
        except OSError as error:
            raise Lost(str(error)) from error
        if len(data) < count:
            raise Lost("closed by the broker")
        return data

    # What tests need again and again.

    def create_topic(self, name: str, partitions: int = 1, /, **configs: str) -> int:
        """The error code. Settings with underscores for dots."""
        settings = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        answer = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        code: int = answer.topics[0].error_code
        return code

    def produce(self, topic: str, batch: bytearray, index: int = 0, acks: int = -1) -> Any:
        return only_partition(self.ask(produce_request(topic, batch, index, acks), NAMED))

    def fetch(self, topic: str, offset: int, index: int = 0, max_bytes: int = 4 << 20) -> Any:
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, session_epoch=-1, topics=topics)
        return self.ask(request, NAMED).responses[0].partitions[0]

    def end_offset(self, topic: str, index: int = 0, *, which: int = LATEST) -> int:
        wanted = ListOffsetsPartition(partition_index=index, timestamp=which)
        topics = [ListOffsetsTopic(name=topic, partitions=[wanted])]
        (answer,) = self.ask(ListOffsetsRequest(replica_id=-1, topics=topics)).topics[0].partitions
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        offset: int = answer.offset
        return offset

    def topic_error(self, name: str) -> int:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        code: int = self.ask(request).topics[0].error_code
        return code

    def producer_id(self) -> int:
        answer = self.ask(InitProducerIdRequest(transactional_id=None))
        assert answer.error_code == ErrorCode.NONE
        identity: int = answer.producer_id
        return identity


def produce_request(topic: str, batch: bytearray, index: int = 0, acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=batch)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def only_partition(response: Any) -> Any:
    return response.responses[0].partition_responses[0]
