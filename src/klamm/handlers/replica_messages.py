"""What brokers say to one another about replicas, between values and the wire: Fetch and AlterPartition, as senders.

The other end of them is `fetch.py` and `alter_partition.py`.
"""

from collections.abc import Iterator

from klamm.broker.broker import Broker
from klamm.broker.replication import IsrAsk
from klamm.errors import ErrorCode, error_code
from klamm.ids import Now, Uuid
from klamm.partition.fetching import FetchAsk, Fetched
from klamm.partition.isr import IsrOutcome
from klamm.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from klamm.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

FETCH_VERSION = 17
ALTER_PARTITION_VERSION = 3
NOTHING = b""


def fetch_request(ask: FetchAsk) -> FetchRequest:
    settings = ask.settings
    topics: dict[Uuid, FetchTopic] = {}
    for position in ask.positions:
        topic = topics.get(position.topic_id)
        if topic is None:
            topic = topics[position.topic_id] = FetchTopic(topic_id=position.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=position.partition_index,
                current_leader_epoch=position.leader_epoch,
                fetch_offset=position.fetch_offset,
                last_fetched_epoch=position.last_fetched_epoch,
                log_start_offset=position.start_offset,
                partition_max_bytes=settings.partition_max_bytes,
            )
        )
    forgotten: dict[Uuid, ForgottenTopic] = {}
    for topic_id, index in ask.forgotten:
        forgotten.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[])).partitions.append(index)
    return FetchRequest(
        replica_state=ReplicaState(replica_id=ask.broker_id, replica_epoch=ask.broker_epoch),
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        session_id=ask.session_id,
        session_epoch=ask.session_epoch,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
    )


def take_fetch_response(ask: FetchAsk, response: FetchResponse, broker: Broker, now: Now) -> None:
    """Append what a leader sent. Views of records are used before this returns."""
    error = error_code(response.error_code)
    broker.replication.fetched(ask, response.session_id, error, _fetched(response), now)


def _fetched(response: FetchResponse) -> Iterator[Fetched]:
    for topic in response.responses:
        for data in topic.partitions:
            yield Fetched(
                topic_id=topic.topic_id,
                index=data.partition_index,
                error=error_code(data.error_code) if data.error_code else ErrorCode.NONE,
                high_watermark=data.high_watermark,
                start_offset=data.log_start_offset,
                records=NOTHING if data.records is None else data.records,
                diverging_epoch=data.diverging_epoch.epoch,
                diverging_end=data.diverging_epoch.end_offset,
            )


def alter_partition_request(ask: IsrAsk) -> AlterPartitionRequest:
    topics: dict[Uuid, TopicData] = {}
    for wish in ask.wishes:
        topic = topics.setdefault(wish.topic_id, TopicData(topic_id=wish.topic_id, partitions=[]))
        topic.partitions.append(
            PartitionData(
                partition_index=wish.topic_partition.partition,
                leader_epoch=wish.leader_epoch,
                new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in wish.isr],
                partition_epoch=wish.partition_epoch,
            )
        )
    return AlterPartitionRequest(broker_id=ask.broker_id, broker_epoch=ask.broker_epoch, topics=list(topics.values()))


def take_alter_partition_response(ask: IsrAsk, response: AlterPartitionResponse, broker: Broker, now: Now) -> None:
    if response.error_code:
        # Not the controller, or not of this life of ours: in either case nothing was decided.
        broker.replication.isr_lost(ask, now)
        return
    outcomes = [
        IsrOutcome(
            topic_id=topic.topic_id,
            index=data.partition_index,
            error=error_code(data.error_code),
            leader_epoch=data.leader_epoch,
            partition_epoch=data.partition_epoch,
            isr=tuple(data.isr),
        )
        for topic in response.topics
        for data in topic.partitions
    ]
    broker.replication.isr_answered(ask, outcomes, now)
