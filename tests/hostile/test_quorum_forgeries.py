"""What only nodes of a quorum say to one another, forged: three processes, and one, keep their leader and serve on.

Every version, epochs that are old, next, and beyond all reach, in the names of voters and of a stranger, to every node.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.handlers.quorum_messages import to_wire
from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from klamm.local.problems import NodeDidNotStart
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    LogPosition,
    Outgoing,
    QuorumFetch,
    Request,
    SnapshotFetch,
    SnapshotId,
    VoteRequest,
)
from klamm.quorum.raft import TOPIC
from klamm.wire.apis import API_BY_KEY, FETCH
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.harness.raw import Raw
from tests.harness.waiting import wait_until
from tests.hostile.batches import batch_of
from tests.hostile.target import Target, produce
from tests.local.several import needs_several_nodes

STRANGER = ReplicaKey(7, bytes(15) + b"7")
NOBODY_ASKED = ReplicaKey(-1)
FIRST_OF_FOLLOWERS = 4
"""The first Fetch that is served."""


class Quorum:
    """As any client sees it."""

    def __init__(self, ports: dict[int, int]) -> None:
        self.ports = ports

    def described(self) -> tuple[int, int, dict[int, bytes]]:
        """Leader, epoch, and the voters' directories."""
        request = DescribeQuorumRequest(topics=[TopicData(topic_name=TOPIC, partitions=[PartitionData()])])
        with Raw(next(iter(self.ports.values()))) as client:
            (partition,) = client.call("DescribeQuorum", 2, request).topics[0].partitions
        directories = {each.replica_id: each.replica_directory_id for each in partition.current_voters}
        return partition.leader_id, partition.leader_epoch, directories

    def create_topic(self, name: str) -> int:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=-1)
        with Raw(next(iter(self.ports.values()))) as client:
            answer = client.call("CreateTopics", 7, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        return int(answer.topics[0].error_code)

    def besiege(self, epochs: list[int], meanwhile: Callable[[], None]) -> None:
        """Everything that can be forged, to every node."""
        _, _, directories = self.described()
        names = [STRANGER, *(ReplicaKey(*each) for each in directories.items())]
        for target, port in self.ports.items():
            here = ReplicaKey(target, directories[target])
            with Raw(port) as client:
                for epoch in epochs:
                    for name in names:
                        for request in forged(here, name, epoch):
                            ask_in_all_versions(client, request)
                    meanwhile()


def forged(here: ReplicaKey, name: ReplicaKey, epoch: int) -> Iterator[Request]:
    far = 1 << 40
    for asked in (NOBODY_ASKED, here):
        for pre_vote in (False, True):
            yield VoteRequest(None, asked, name, epoch, LogPosition(max(epoch - 1, 0), far), pre_vote)
        for place in (None, Address("127.0.0.1", 9)):
            yield BeginEpoch(None, asked, name.node_id, epoch, place)
    yield EndEpoch(None, name.node_id, epoch, [here])
    another = ReplicaKey(name.node_id, bytes(15) + b"9")
    yield QuorumFetch(None, another, epoch, far, max(epoch, 0), 0, 1_000, 0)
    yield SnapshotFetch(None, another, epoch, SnapshotId(far, max(epoch, 0)), 0, 1_000)


def ask_in_all_versions(client: Raw, request: Request) -> None:
    key, _, message = to_wire(Outgoing(0, "", 0, request, 0.0))
    first = FIRST_OF_FOLLOWERS if key == FETCH else API_BY_KEY[key].min_version
    for version in range(first, API_BY_KEY[key].max_version + 1):
        _naming(message, version)
        client.call(key, version, message)


def _naming(message: Any, version: int) -> None:
    """Older versions of Fetch name the topic and the replica elsewhere."""
    if hasattr(message, "replica_state"):
        message.replica_id = message.replica_state.replica_id
        message.topics[0].topic = TOPIC


def epochs_around(epoch: int) -> list[int]:
    return [0, epoch, epoch + 1, epoch + 5, epoch + 11, 2**31 - 1]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster")
    yield cluster
    cluster.kill(node.node_id for node in cluster.record().nodes)
    cluster.states()


@needs_several_nodes
def test_three_nodes_keep_their_leader_and_serve_on(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(brokers=3, racks=1, first_port=0))
    quorum = Quorum({node.node_id: node.port for node in record.nodes})
    assert quorum.create_topic("orders") == 0
    before = quorum.described()
    with Raw(leading_port(quorum, "orders")) as producer:

        def write() -> None:
            answer = producer.call("Produce", 9, produce("orders", batch_of(b"one more"), acks=-1))
            assert answer.responses[0].partition_responses[0].error_code == 0

        quorum.besiege(epochs_around(before[1]), write)
        assert quorum.described() == before, "the same leader in the same epoch"
        assert quorum.create_topic("after-all-that") == 0
        write()
    everybody = [node.node_id for node in record.nodes]
    assert [state for _, state in cluster.states()] == ["running"] * 3
    cluster.kill(everybody)
    cluster.states()
    assert cluster.start(everybody), "and they come back"
    leader, epoch, directories = quorum.described()
    assert leader in directories and epoch == before[1] + 1 and directories == before[2]


def test_one_node_keeps_leading_itself(start_target: Callable[..., Target]) -> None:
    target = start_target(controller_quorum_voters="0@127.0.0.1:9")
    quorum = Quorum({0: target.port})
    before = quorum.described()
    quorum.besiege(epochs_around(before[1]), target.check_witness_is_served)
    assert quorum.described() == before
    assert quorum.create_topic("after-all-that") == 0


@needs_several_nodes
def test_a_quorum_that_an_earlier_version_let_be_spoiled_is_told_how_to_go_on(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(brokers=3, racks=1, first_port=0))
    everybody = [node.node_id for node in record.nodes]
    quorum = Quorum({node.node_id: node.port for node in record.nodes})
    assert quorum.create_topic("kept") == 0
    cluster.kill(everybody)
    cluster.states()
    paths = [cluster.directory / f"node-{each}" / f"{TOPIC}-0" / "quorum-state" for each in everybody]
    for path in paths:
        path.write_text(json.dumps({**json.loads(path.read_text()), "leaderEpoch": 2**31}))
    with pytest.raises(NodeDidNotStart) as told:
        cluster.start(everybody)
    assert "set leaderEpoch to 1000000" in str(told.value) and "Traceback" not in str(told.value)
    cluster.kill(everybody)
    cluster.states()
    for path in paths:
        path.write_text(
            json.dumps({**json.loads(path.read_text()), "leaderEpoch": 1_000_000, "leaderId": -1, "votedId": -1})
        )
    assert cluster.start(everybody)
    assert quorum.create_topic("kept") == 36, "it exists"
    assert quorum.described()[1] == 1_000_001


def leading_port(quorum: Quorum, topic: str) -> int:
    from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

    found: list[int] = []

    def is_led() -> bool:
        with Raw(next(iter(quorum.ports.values()))) as client:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            (answer,) = client.call("Metadata", 9, request).topics
        found[:] = [quorum.ports[each.leader_id] for each in answer.partitions if each.leader_id >= 0]
        return bool(found)

    wait_until(is_led, f"{topic} is led")
    return found[0]
