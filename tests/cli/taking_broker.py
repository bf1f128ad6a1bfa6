"""A broker of a few lines that takes what idempotent producers send, and says of it what a test wants to hear.

It knows one topic: some of its partitions it leads, some nobody does.
"""

from collections.abc import Sequence

from klamm.errors import ErrorCode
from klamm.local.asking import METADATA
from klamm.records.batch import batches
from klamm.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from klamm.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from klamm.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from tests.cli.fake_broker import FakeBroker

PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS = 0, 1, 18, 19, 22, 32
VERSIONS = {
    PRODUCE: (3, 9),
    FETCH: (4, 12),
    METADATA: (0, 12),
    API_VERSIONS: (0, 3),
    CREATE_TOPICS: (2, 7),
    INIT_PRODUCER_ID: (0, 4),
}
"""A broker that knows no Fetch of this kind is too old for idempotence in librdkafka's eyes."""
ITSELF, NOBODY = 7, -1


class TakingBroker(FakeBroker):
    def __init__(
        self, topic: str, leads: Sequence[int] = (0,), leaderless: Sequence[int] = (), says: int = ErrorCode.NONE
    ) -> None:
        super().__init__()
        self._topic, self.says = topic, says
        self._partitions = [
            *(MetadataResponsePartition(0, each, ITSELF, 0, [ITSELF], [ITSELF]) for each in leads),
            *(
                MetadataResponsePartition(ErrorCode.LEADER_NOT_AVAILABLE, each, NOBODY, 0, [ITSELF], [])
                for each in leaderless
            ),
        ]
        self.epoch = 0
        self.written: set[tuple[int, int]] = set()
        """Of each batch: under which epoch, and the sequence of its first record."""
        self.answers = {
            API_VERSIONS: lambda _: ApiVersionsResponse(
                api_keys=[ApiVersion(key, least, most) for key, (least, most) in VERSIONS.items()]
            ),
            METADATA: self._metadata,
            INIT_PRODUCER_ID: self._identity,
            PRODUCE: self._take,
            DESCRIBE_CONFIGS: self._required,
        }

    @property
    def servers(self) -> str:
        return str(self.address)

    def _metadata(self, _: object) -> MetadataResponse:
        topics = [MetadataResponseTopic(0, self._topic, partitions=self._partitions)]
        itself = MetadataResponseBroker(ITSELF, *self.address)
        return MetadataResponse(brokers=[itself], controller_id=ITSELF, topics=topics)

    def _identity(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        self.epoch += request.producer_id == 1
        return InitProducerIdResponse(producer_id=1, producer_epoch=self.epoch)

    def _required(self, _: object) -> DescribeConfigsResponse:
        one = DescribeConfigsResourceResult("min.insync.replicas", "1")
        return DescribeConfigsResponse(results=[DescribeConfigsResult(configs=[one])])

    def _take(self, request: ProduceRequest) -> ProduceResponse:
        said = []
        for topic in request.topic_data:
            for each in topic.partition_data:
                assert each.records is not None
                self.written |= {(batch.producer_epoch, batch.base_sequence) for _, batch in batches(each.records)}
                said.append(PartitionProduceResponse(each.index, self.says, -1))
        return ProduceResponse([TopicProduceResponse(self._topic, partition_responses=said)])
