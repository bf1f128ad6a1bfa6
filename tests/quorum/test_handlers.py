"""The quorum's APIs as handlers: what they answer at once, what waits, and what is sent on to the leader."""

from types import SimpleNamespace
from typing import Any, cast

from klamm.broker.answer import Applied, Changed, Elsewhere, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.handlers import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch_snapshot,
    quorum_fetch,
    quorum_messages,
    remove_raft_voter,
    vote,
)
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import LogPosition, Outgoing, QuorumFetch, VoteRequest
from klamm.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from klamm.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from klamm.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from klamm.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from klamm.wire.messages.fetch_snapshot import FetchSnapshotRequest
from klamm.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from klamm.wire.messages.vote import VoteRequest as WireVoteRequest
from tests.quorum.test_stories import others, running
from tests.quorum.world import CLUSTER, World


def call(world: World, node_id: int, version: int = 2) -> Call:
    broker = SimpleNamespace(quorum=world.nodes[node_id].alive, cluster_id=CLUSTER, quorum_touched=False)
    return Call(cast(Any, broker), version, "", 1, "peer", world.now)


def response(answer: object) -> Any:
    assert isinstance(answer, Reply)
    return answer.response


def test_a_vote_is_answered_at_once() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    request = VoteRequest(CLUSTER, ReplicaKey(follower), ReplicaKey(9, bytes(16)), 1, LogPosition(0, 0), pre_vote=True)
    _, _, wire = quorum_messages.to_wire(Outgoing(follower, "h", 1, request, 1.0))
    found = response(vote.handle(cast(Any, wire), call(world, follower)))
    partition = found.topics[0].partitions[0]
    assert (partition.vote_granted, partition.leader_id, partition.leader_epoch) == (False, leader, 1)
    assert [(each.node_id, each.host) for each in found.node_endpoints] == [(leader, f"host-{leader}")]


def test_requests_about_nothing_are_refused_and_change_nothing() -> None:
    world, leader = running()
    before = repr(world.nodes[leader].raft)
    answers = [
        vote.handle(WireVoteRequest(), call(world, leader)),
        begin_quorum_epoch.handle(BeginQuorumEpochRequest(), call(world, leader, 1)),
        end_quorum_epoch.handle(EndQuorumEpochRequest(), call(world, leader, 1)),
        fetch_snapshot.handle(FetchSnapshotRequest(), call(world, leader, 1)),
    ]
    assert [response(answer).error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 4
    assert repr(world.nodes[leader].raft) == before


def test_a_fetch_waits_until_there_is_news() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    node = world.nodes[follower]
    fetch = QuorumFetch(CLUSTER, ReplicaKey(follower, node.directory_id), 1, 3, 1, 3, 1_000, 400)
    _, version, wire = quorum_messages.to_wire(Outgoing(leader, "h", 1, fetch, 1.0))
    asked = call(world, leader, version)
    answer = quorum_fetch.answer(cast(Any, wire), asked)
    assert isinstance(answer, Later) and isinstance(answer.until, Changed)
    assert asked.broker.quorum_touched and answer.deadline_ms == world.now_ms + 400
    assert not answer.until.holds()
    world.nodes[leader].alive.propose([world.propose(leader)], world.now)
    assert answer.until.holds()
    found = cast(Any, answer.then(world.now, True))
    assert len(found.responses[0].partitions[0].records) > 0


def test_the_leader_describes_the_quorum_and_others_send_the_question_on() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    request = DescribeQuorumRequest(
        topics=[
            TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(), PartitionData(partition_index=1)]),
            TopicData(topic_name="invoice", partitions=[PartitionData()]),
        ]
    )
    assert isinstance(describe_quorum.handle(request, call(world, follower)), Elsewhere)
    found = response(describe_quorum.handle(request, call(world, leader)))
    first, second = found.topics[0].partitions
    assert (first.leader_id, first.leader_epoch, first.high_watermark) == (leader, 1, 3)
    assert [each.replica_id for each in first.current_voters] == [0, 1, 2]
    assert second.error_code == found.topics[1].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [node.node_id for node in found.nodes] == [0, 1, 2]


def test_voters_are_changed_by_the_leader_and_answered_when_that_is_committed() -> None:
    world, leader = running()
    follower = others(world, leader)[0]
    home = world.nodes[follower].directory_id
    remove = RemoveRaftVoterRequest(cluster_id=None, voter_id=follower, voter_directory_id=home)
    assert isinstance(remove_raft_voter.handle(remove, call(world, follower, 0)), Elsewhere)
    answer = remove_raft_voter.handle(remove, call(world, leader, 0))
    assert isinstance(answer, Later) and isinstance(answer.until, Applied) and answer.until.offset == 3
    assert cast(Any, answer.then(world.now, True)).error_code == ErrorCode.NONE
    assert cast(Any, answer.then(world.now, False)).error_code == ErrorCode.REQUEST_TIMED_OUT
    world.settle(world.nodes[leader])
    world.run(200)
    add = AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=5_000,
        voter_id=follower,
        voter_directory_id=world.nodes[follower].directory_id,
        listeners=[Listener(name="CONTROLLER", host=f"host-{follower}", port=9090)],
    )
    assert isinstance(add_raft_voter.handle(add, call(world, follower, 1)), Elsewhere)
    assert isinstance(add_raft_voter.handle(add, call(world, leader, 1)), Later)
    assert list(world.nodes[leader].alive.voters) == [0, 1, 2]
    for broken in (
        AddRaftVoterRequest(cluster_id="another", voter_id=7),
        AddRaftVoterRequest(cluster_id=CLUSTER, voter_id=7),
        AddRaftVoterRequest(
            cluster_id=CLUSTER, voter_id=7, listeners=[Listener(name="CONTROLLER", host="host-7", port=9090)]
        ),
        RemoveRaftVoterRequest(cluster_id="another", voter_id=7),
    ):
        handler = add_raft_voter if isinstance(broken, AddRaftVoterRequest) else remove_raft_voter
        found = response(handler.handle(cast(Any, broken), call(world, leader, 0))).error_code
        assert found in (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.INVALID_REQUEST)
