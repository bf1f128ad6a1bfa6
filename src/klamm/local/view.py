"""The cluster as one of its brokers sees it: who is there, who decides, where every partition stands."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from klamm.errors import ErrorCode
from klamm.local.asking import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    METADATA,
    Address,
    Conversation,
    NoAnswer,
)
from klamm.local.asking_several import first_answer
from klamm.wire.messages.describe_cluster import DescribeClusterRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

METADATA_TOPIC = "__cluster_metadata"
DESCRIBE_CONFIGS, TOPIC_RESOURCE = 32, 2
MIN_IN_SYNC = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    broker_id: int
    rack: str | None
    host: str
    port: int
    is_fenced: bool
    """Registered, and not taking part at the moment: down, or just starting."""
    is_gone: bool = False
    """It does not run, and nobody is left who could decide that it is fenced."""


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    is_internal: bool = False
    """Of a topic that the brokers keep for themselves."""
    min_in_sync: int = 1
    """The topic's min.insync.replicas. It is asked for where somebody is out of sync; elsewhere it does not matter."""

    @property
    def is_offline(self) -> bool:
        return self.leader < 0

    @property
    def is_under_replicated(self) -> bool:
        return len(self.in_sync) < len(self.replicas)

    @property
    def is_below_min_in_sync(self) -> bool:
        """It is led, and refuses what is written with acks=all. More than all replicas cannot be asked for."""
        return not self.is_offline and len(self.in_sync) < min(self.min_in_sync, len(self.replicas))


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    cluster_id: str
    controller: int | None
    """The node whose quorum replica leads; None while nobody does, or nobody says."""
    brokers: tuple[BrokerSeen, ...]
    partitions: tuple[PartitionSeen, ...]
    quorum_epoch: int | None = None
    """Under which the controller leads."""


class UnknownTopic(Exception):  # noqa: N818
    """A topic that is not there."""


def cluster_seen(
    addresses: Sequence[Address], timeout_seconds: float, topics: Sequence[str] | None = None
) -> ClusterSeen:
    """What the first of these brokers that answers says, of all topics or of these. NoAnswer if none does."""
    _, seen = first_answer(addresses, timeout_seconds, lambda broker: seen_by(broker, topics))
    return seen


def placement_seen(
    addresses: Sequence[Address], timeout_seconds: float, gone: Collection[int]
) -> tuple[Address, ClusterSeen]:
    """Where nothing can be decided: who of these answers first, and what it last heard. It is not asked who decides,
    which it would try to find out for as long as we wait."""
    return first_answer(addresses, timeout_seconds, lambda broker: placement_seen_by(broker, gone=gone))


def live_brokers(address: Address, timeout_seconds: float) -> set[int]:
    """The brokers that this one tells its clients of."""
    with Conversation(address, timeout_seconds) as broker:
        return {each.node_id for each in broker.ask(METADATA, 12, MetadataRequest(topics=[])).brokers}


def cluster_id_seen(addresses: Sequence[Address], timeout_seconds: float) -> tuple[Address, str | None]:
    """The first of these brokers to answer, and the cluster it belongs to; None for one that has none."""
    who, answer = first_answer(
        addresses, timeout_seconds, lambda broker: broker.ask(METADATA, 12, MetadataRequest(topics=[]))
    )
    return who, answer.cluster_id


def seen_by(broker: Conversation, topics: Sequence[str] | None = None) -> ClusterSeen:
    """What this broker says, of all topics or of these."""
    seen = placement_seen_by(broker, topics)
    controller, epoch = controller_seen_by(broker) or (None, None)
    return replace(seen, controller=controller, quorum_epoch=epoch)


def placement_seen_by(
    broker: Conversation, topics: Sequence[str] | None = None, gone: Collection[int] = ()
) -> ClusterSeen:
    """The same without who decides: a controller that stands still would hold up whoever asks for it. Of those that are
    gone it is known better than the broker knows: they neither lead nor follow, whatever it heard last."""
    described = broker.ask(DESCRIBE_CLUSTER, 2, DescribeClusterRequest(include_fenced_brokers=True))
    if described.error_code:
        raise NoAnswer(f"DescribeCluster: {ErrorCode(described.error_code).name}")
    brokers = tuple(
        BrokerSeen(each.broker_id, each.rack, each.host, each.port, each.is_fenced, each.broker_id in gone)
        for each in sorted(described.brokers, key=lambda each: each.broker_id)
    )
    heard = [without(each, gone) for each in _partitions_seen(broker, topics)]
    partitions = tuple(_with_minimum(broker, heard))
    return ClusterSeen(described.cluster_id, None, brokers, partitions)


def without(partition: PartitionSeen, gone: Collection[int]) -> PartitionSeen:
    """As it stands without these brokers."""
    in_sync = tuple(each for each in partition.in_sync if each not in gone)
    return replace(partition, leader=-1 if partition.leader in gone else partition.leader, in_sync=in_sync)


def _partitions_seen(broker: Conversation, topics: Sequence[str] | None) -> list[PartitionSeen]:
    wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    answer = broker.ask(METADATA, 12, MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
    found = []
    for topic in sorted(answer.topics, key=lambda topic: topic.name):
        if topic.error_code:
            raise UnknownTopic(topic.name)
        for each in sorted(topic.partitions, key=lambda each: each.partition_index):
            replicas, in_sync = tuple(each.replica_nodes), tuple(each.isr_nodes)
            found.append(
                PartitionSeen(
                    topic.name, each.partition_index, each.leader_id, replicas, in_sync, bool(topic.is_internal)
                )
            )
    return found


def _with_minimum(broker: Conversation, partitions: list[PartitionSeen]) -> list[PartitionSeen]:
    """One question more where somebody is out of sync, none in a cluster that is well."""
    topics = sorted({each.topic for each in partitions if each.is_under_replicated})
    if not topics:
        return partitions
    resources = [DescribeConfigsResource(TOPIC_RESOURCE, topic, [MIN_IN_SYNC]) for topic in topics]
    answer = broker.ask(DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources))
    minimum = {result.resource_name: int(each.value) for result in answer.results for each in result.configs}
    return [replace(each, min_in_sync=minimum.get(each.topic, 1)) for each in partitions]


def controller_seen_by(broker: Conversation) -> tuple[int, int] | None:
    """Who leads the quorum, and its epoch; None where nobody says. The last question of a conversation that got no
    answer: whoever does not know this request closes it, and of whoever is late the answer may still come."""
    request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])
    try:
        answer = broker.ask(DESCRIBE_QUORUM, 2, request)
    except NoAnswer:
        return None
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        return None
    quorum = answer.topics[0].partitions[0]
    return (quorum.leader_id, quorum.leader_epoch) if quorum.leader_id >= 0 else None
