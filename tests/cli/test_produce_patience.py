"""Who gives records up sends none of them again: of what the log may have already there is no second copy."""

import json
import time
from collections.abc import Callable

import pytest

from klamm.cli.json_records import ANY_PARTITION, NOW_MS, Record
from klamm.cli.produce_patience import Patience
from klamm.cli.produce_sending import Sender
from klamm.errors import ErrorCode
from klamm.local.asking import METADATA
from klamm.records.batch import batches
from klamm.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from klamm.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from klamm.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from tests.cli.fake_broker import FakeBroker

PRODUCE, FETCH, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 18, 22
VERSIONS = {PRODUCE: (3, 9), FETCH: (4, 12), METADATA: (0, 12), API_VERSIONS: (0, 3), INIT_PRODUCER_ID: (0, 4)}
"""A broker that knows no Fetch of this kind is too old for idempotence in librdkafka's eyes."""
RECORD: Record = (b"x", None, ANY_PARTITION, None, None, NOW_MS, None)


class Writing(FakeBroker):
    """It takes every batch, and says that the others did not have it in time: the records are in the log."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        self.written: set[tuple[int, int]] = set()
        """Of each batch: under which epoch, and the sequence of its first record."""
        self.answers = {
            API_VERSIONS: lambda _: ApiVersionsResponse(
                api_keys=[ApiVersion(key, least, most) for key, (least, most) in VERSIONS.items()]
            ),
            METADATA: self._metadata,
            INIT_PRODUCER_ID: self._identity,
            PRODUCE: self._written_late,
        }

    def _metadata(self, _: object) -> MetadataResponse:
        partitions = [MetadataResponsePartition(0, 0, 7, 0, [7], [7])]
        topics = [MetadataResponseTopic(0, "t", partitions=partitions)]
        return MetadataResponse(brokers=[MetadataResponseBroker(7, *self.address)], controller_id=7, topics=topics)

    def _identity(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        self.epoch += request.producer_id == 1
        return InitProducerIdResponse(producer_id=1, producer_epoch=self.epoch)

    def _written_late(self, request: ProduceRequest) -> ProduceResponse:
        for topic in request.topic_data:
            for each in topic.partition_data:
                assert each.records is not None
                self.written |= {(batch.producer_epoch, batch.base_sequence) for _, batch in batches(each.records)}
        late = PartitionProduceResponse(0, ErrorCode.REQUEST_TIMED_OUT, -1)
        return ProduceResponse([TopicProduceResponse("t", partition_responses=[late])])


def test_what_is_given_up_is_not_sent_under_another_epoch() -> None:
    """librdkafka's own time limit did: a topic held 117,015 records of 58,710."""
    with Writing() as broker:
        host, port = broker.address
        settings = {"enable.idempotence": True, "acks": -1, "linger.ms": 0, "retry.backoff.ms": 10}
        sender = Sender(f"{host}:{port}", "t", settings, gives_up_after_seconds=2.0)
        began = time.monotonic()
        sender.send(sender.paced([RECORD] * 1_000, 100, nothing), nothing)
        sender.flush(nothing)
        assert 2.0 <= time.monotonic() - began < 8.0
        assert {epoch for epoch, _ in broker.written} == {0}
        asked = broker.asked.count(PRODUCE)
        assert 0 < sender.sent < 1_000 and sender.gave_up
        assert (sender.acknowledged, sender.failed, sender.open) == (0, sender.sent, sender.sent)
        assert list(sender.problems) == [sender.timed_out]
        sender.flush(nothing)
        time.sleep(0.2)
        assert broker.asked.count(PRODUCE) == asked, "and nothing of it is sent any more"
        del sender


def nothing() -> None:
    pass


def told(**waiting: tuple[int, int]) -> str:
    """Of each partition: how many records wait, and the last that was acknowledged."""
    partitions = {
        number: {"acked_msgid": acknowledged, "msgq_cnt": 0, "xmit_msgq_cnt": left, "msgs_inflight": 0}
        for number, (left, acknowledged) in waiting.items()
    }
    return json.dumps({"topics": {"t": {"partitions": partitions}}})


@pytest.fixture
def patience() -> Patience:
    return Patience(10.0)


@pytest.fixture
def hear(patience: Patience) -> Callable[[str], None]:
    heard = patience.settings["stats_cb"]
    assert callable(heard)
    return heard


def test_one_partition_that_stands_still_is_enough(patience: Patience, hear: Callable[[str], None]) -> None:
    assert not patience.is_over(0.0), "nothing was heard"
    for second in range(11):
        hear(told(p0=(5, second), p1=(1, 7)))
        assert not patience.is_over(second)
    hear(told(p0=(5, 11), p1=(1, 7)))
    assert patience.is_over(11.0)


def test_whoever_has_nothing_to_wait_for_is_patient(patience: Patience, hear: Callable[[str], None]) -> None:
    hear(told(p0=(1, 3)))
    assert not patience.is_over(0.0)
    hear(told(p0=(0, 4)))
    assert not patience.is_over(60.0)
    hear(told(p0=(1, 4)))
    assert not patience.is_over(120.0), "it has just been sent"
    hear(told(p0=(1, 4)))
    assert patience.is_over(131.0)
