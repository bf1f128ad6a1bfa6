"""What a broker has not heard of yet is asked again, of it and of others."""

from collections.abc import Sequence

import pytest

from klamm.cli import main, topic_heard
from klamm.cli.group_asking import Cluster
from klamm.cli.topic_heard import partitions_once
from klamm.cli.topic_moves import ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS
from klamm.ids import TopicPartition
from klamm.local.asking import DESCRIBE_CLUSTER, METADATA, Address
from klamm.local.view import ClusterSeen, PartitionSeen
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from klamm.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from klamm.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.fake_broker import Answers, FakeBroker

PLACE = TopicPartition("orders", 0)


class Slow(Cluster):
    """Its broker hears of the new leader, 2, when it is asked for the third time."""

    def __init__(self) -> None:
        super().__init__([Address("b", 1)])
        self.questions = 0

    def seen(self, topics: Sequence[str] | None = None) -> ClusterSeen:
        self.questions += 1
        leader = 2 if self.questions > 2 else 1
        return ClusterSeen("some", 0, (), (PartitionSeen("orders", 0, leader, (2, 1), (2, 1)),))


def test_a_change_is_waited_for() -> None:
    cluster = Slow()
    assert partitions_once(cluster, ["orders"], lambda now: now[PLACE].leader == 2)[PLACE].leader == 2
    assert cluster.questions == 3


def test_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_heard, "HEARD_SECONDS", 0.0)
    with FakeBroker() as broker:
        cluster = Slow()
        cluster._known = [broker.address]
        broker.answers = {METADATA: lambda _: MetadataResponse()}
        assert partitions_once(cluster, ["orders"], lambda now: False)[PLACE].leader == 1


@pytest.mark.parametrize("knows", [True, False])
def test_a_move_is_done_when_any_broker_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], knows: bool
) -> None:
    """Broker 7 is cut off from the controller. It was said that somebody had sent the partition elsewhere: that is true
    only where no broker has it where it was to be."""
    monkeypatch.setattr(topic_heard, "HEARD_SECONDS", 0.0)
    nothing, done = ListPartitionReassignmentsResponse(), ReassignablePartitionResponse(0, 0, None)
    with FakeBroker() as late, FakeBroker() as other:
        for broker, replicas in ((late, [7]), (other, [8] if knows else [7])):
            broker.answers = {
                **standing((late, other), replicas),
                LIST_PARTITION_REASSIGNMENTS: lambda _: nothing,
                ALTER_PARTITION_REASSIGNMENTS: lambda _: AlterPartitionReassignmentsResponse(
                    responses=[ReassignableTopicResponse("t", [done])]
                ),
            }
        code = main(["topic", "move", "t", "--replicas", "8", "--bootstrap", str(late.address)])
    said = capsys.readouterr()
    if knows:
        assert (code, said.err) == (0, "done; broker 7 has not heard of it yet\n")
        assert said.out.splitlines()[0] == "topic t: 1 of 1 partition moved"
    else:
        assert (code, said.err) == (1, "klamm topic move: t-0: it was sent elsewhere meanwhile: 7\n")


def standing(brokers: Sequence[FakeBroker], replicas: list[int]) -> Answers:
    """What a broker says that has the only partition of t there."""
    partition = MetadataResponsePartition(0, 0, leader_id=replicas[0], replica_nodes=replicas, isr_nodes=replicas)
    topic = MetadataResponseTopic(name="t", partitions=[partition])
    addresses = {7 + number: each.address for number, each in enumerate(brokers)}
    listed = [MetadataResponseBroker(number, *address) for number, address in addresses.items()]
    described = [DescribeClusterBroker(number, *address) for number, address in addresses.items()]
    return {
        METADATA: lambda _: MetadataResponse(brokers=listed, topics=[topic]),
        DESCRIBE_CLUSTER: lambda _: DescribeClusterResponse(brokers=described),
    }
