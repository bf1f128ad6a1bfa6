"""The quorum's values as Kafka's messages, and back: what it says to other nodes, and what they say to it.

Kafka's messages speak of any number of partitions; the quorum has one. A request that is not about exactly that one,
or a reply that lacks it, is an INVALID_REQUEST: an empty list must not find anybody unprepared (CVE-2026-83525).
"""

from collections.abc import Callable, Sequence
from typing import Any

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.quorum.identity import ReplicaKey
from klamm.quorum.messages import (
    Address,
    BeginEpoch,
    EndEpoch,
    EpochReply,
    LogPosition,
    Outgoing,
    QuorumFetch,
    QuorumFetched,
    ReplyValue,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotId,
    VoteReply,
    VoteRequest,
)
from klamm.quorum.raft import TOPIC
from klamm.quorum.voters import LISTENER
from klamm.wire.messages import begin_quorum_epoch, end_quorum_epoch, fetch, fetch_snapshot, vote

TOPIC_ID: Uuid = bytes(15) + b"\x01"
"""Kafka's id for the metadata topic."""

FETCH, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, FETCH_SNAPSHOT = 1, 52, 53, 54, 59
FETCH_VERSION, VOTE_VERSION, EPOCH_VERSION, SNAPSHOT_VERSION = 18, 2, 1, 1
FIRST_FETCH_WITH_IDS = 13
FIRST_FETCH_WITH_REPLICA_STATE = 15
FIRST_END_WITH_CANDIDATES = 1
PARTITION = 0


# What we ask.


def to_wire(outgoing: Outgoing) -> tuple[int, int, object]:
    """API key, version and message of a request."""
    match outgoing.request:
        case VoteRequest() as request:
            return VOTE, VOTE_VERSION, _vote(request)
        case BeginEpoch() as request:
            return BEGIN_QUORUM_EPOCH, EPOCH_VERSION, _begin(request)
        case EndEpoch() as request:
            return END_QUORUM_EPOCH, EPOCH_VERSION, _end(request)
        case QuorumFetch() as request:
            return FETCH, FETCH_VERSION, _fetch(request)
        case SnapshotFetch() as request:
            return FETCH_SNAPSHOT, SNAPSHOT_VERSION, _fetch_snapshot(request)


def reply_from_wire(outgoing: Outgoing, response: Any) -> ReplyValue:
    """What the answer to this request says. KafkaError: nothing that can be used."""
    if response.error_code:
        raise KafkaError(_code(response.error_code))
    places = {each.node_id: Address(each.host, each.port) for each in response.node_endpoints}
    match outgoing.request:
        case VoteRequest():
            answer = _only(response.topics, _by_name, "partition_index")
            return VoteReply(
                answer.leader_epoch,
                answer.vote_granted,
                answer.leader_id,
                places.get(answer.leader_id),
                _code(answer.error_code),
            )
        case BeginEpoch() | EndEpoch():
            answer = _only(response.topics, _by_name, "partition_index")
            return EpochReply(
                answer.leader_epoch, answer.leader_id, places.get(answer.leader_id), _code(answer.error_code)
            )
        case QuorumFetch():
            return _fetched_from_wire(_only(response.responses, _by_id, "partition_index"), places)
        case SnapshotFetch():
            return _chunk_from_wire(_only(response.topics, _snapshot_name, "index"), places)


def _vote(request: VoteRequest) -> vote.VoteRequest:
    partition = vote.PartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate.node_id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=request.log.epoch,
        last_offset=request.log.end_offset,
        pre_vote=request.pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.node_id,
        topics=[vote.TopicData(topic_name=TOPIC, partitions=[partition])],
    )


def _begin(request: BeginEpoch) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.PartitionData(
        voter_directory_id=request.voter.directory_id, leader_id=request.leader_id, leader_epoch=request.epoch
    )
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id=request.cluster_id,
        voter_id=request.voter.node_id,
        topics=[begin_quorum_epoch.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=LISTENER, host=each.host, port=each.port)
            for each in _places(request.leader_address)
        ],
    )


def _end(request: EndEpoch) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.PartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_candidates=[
            end_quorum_epoch.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in request.successors
        ],
    )
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        topics=[end_quorum_epoch.TopicData(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=[
            end_quorum_epoch.LeaderEndpoint(name=LISTENER, host=each.host, port=each.port)
            for each in _places(request.leader_address)
        ],
    )


def _fetch(request: QuorumFetch) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        current_leader_epoch=request.epoch,
        fetch_offset=request.offset,
        last_fetched_epoch=request.last_fetched_epoch,
        partition_max_bytes=request.max_bytes,
        replica_directory_id=request.replica.directory_id,
        high_watermark=request.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=request.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=request.replica.node_id),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.max_bytes,
        topics=[fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def _fetch_snapshot(request: SnapshotFetch) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.PartitionSnapshot(
        current_leader_epoch=request.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=request.snapshot.end_offset, epoch=request.snapshot.epoch),
        position=request.position,
        replica_directory_id=request.replica.directory_id,
    )
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=request.replica.node_id,
        max_bytes=request.max_bytes,
        topics=[fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition])],
    )


def _fetched_from_wire(answer: fetch.PartitionData, places: dict[BrokerId, Address]) -> QuorumFetched:
    leader, parted, snapshot = answer.current_leader, answer.diverging_epoch, answer.snapshot_id
    if parted.epoch >= 0 > parted.end_offset or snapshot.end_offset >= 0 > snapshot.epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{parted} and {snapshot} are no places in a log")
    return QuorumFetched(
        epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        leader_address=places.get(leader.leader_id),
        error=_code(answer.error_code),
        high_watermark=answer.high_watermark,
        start_offset=answer.log_start_offset,
        # The bytes behind it are gone when the step ends.
        records=bytes(answer.records) if answer.records else None,
        diverging=LogPosition(parted.epoch, parted.end_offset) if parted.epoch >= 0 else None,
        snapshot=SnapshotId(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
    )


def _chunk_from_wire(
    answer: fetch_snapshot.PartitionSnapshotResponse, places: dict[BrokerId, Address]
) -> SnapshotChunk:
    leader = answer.current_leader
    return SnapshotChunk(
        epoch=leader.leader_epoch,
        leader_id=leader.leader_id,
        leader_address=places.get(leader.leader_id),
        error=_code(answer.error_code),
        snapshot=SnapshotId(answer.snapshot_id.end_offset, answer.snapshot_id.epoch),
        size=answer.size,
        position=answer.position,
        data=bytes(answer.unaligned_records or b""),
    )


# What we are asked.


def vote_request(request: vote.VoteRequest) -> VoteRequest:
    asked = _only(request.topics, _by_name, "partition_index")
    return VoteRequest(
        cluster_id=request.cluster_id,
        voter=ReplicaKey(request.voter_id, asked.voter_directory_id),
        candidate=ReplicaKey(asked.replica_id, asked.replica_directory_id),
        epoch=asked.replica_epoch,
        log=LogPosition(asked.last_offset_epoch, asked.last_offset),
        pre_vote=asked.pre_vote,
    )


def begin_epoch(request: begin_quorum_epoch.BeginQuorumEpochRequest) -> BeginEpoch:
    asked = _only(request.topics, _by_name, "partition_index")
    return BeginEpoch(
        cluster_id=request.cluster_id,
        voter=ReplicaKey(request.voter_id, asked.voter_directory_id),
        leader_id=asked.leader_id,
        epoch=asked.leader_epoch,
        leader_address=_first_place(request.leader_endpoints),
    )


def end_epoch(request: end_quorum_epoch.EndQuorumEpochRequest, version: int) -> EndEpoch:
    asked = _only(request.topics, _by_name, "partition_index")
    if version >= FIRST_END_WITH_CANDIDATES:
        successors = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in asked.preferred_candidates]
    else:
        successors = [ReplicaKey(each) for each in asked.preferred_successors]
    return EndEpoch(
        cluster_id=request.cluster_id,
        leader_id=asked.leader_id,
        epoch=asked.leader_epoch,
        successors=successors,
        leader_address=_first_place(request.leader_endpoints),
    )


def quorum_fetch(request: fetch.FetchRequest, version: int) -> QuorumFetch | None:
    """The fetch of a replica of the metadata log; None for every other fetch."""
    by_id = version >= FIRST_FETCH_WITH_IDS
    with_state = version >= FIRST_FETCH_WITH_REPLICA_STATE
    replica_id = request.replica_state.replica_id if with_state else request.replica_id
    if replica_id == NO_BROKER or len(request.topics) != 1:
        return None
    topic = request.topics[0]
    if (topic.topic_id != TOPIC_ID if by_id else topic.topic != TOPIC) or len(topic.partitions) != 1:
        return None
    asked = topic.partitions[0]
    return QuorumFetch(
        cluster_id=request.cluster_id,
        replica=ReplicaKey(replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        offset=asked.fetch_offset,
        last_fetched_epoch=asked.last_fetched_epoch,
        high_watermark=asked.high_watermark,
        max_bytes=min(request.max_bytes, asked.partition_max_bytes),
        max_wait_ms=request.max_wait_ms,
    )


def snapshot_fetch(request: fetch_snapshot.FetchSnapshotRequest) -> SnapshotFetch:
    asked = _only(request.topics, _snapshot_name, "partition")
    return SnapshotFetch(
        cluster_id=request.cluster_id,
        replica=ReplicaKey(request.replica_id, asked.replica_directory_id),
        epoch=asked.current_leader_epoch,
        snapshot=SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch),
        position=asked.position,
        max_bytes=request.max_bytes,
    )


# What we answer.


def vote_response(reply: VoteReply) -> vote.VoteResponse:
    partition = vote.PartitionDataResponse(
        error_code=reply.error, leader_id=reply.leader_id, leader_epoch=reply.epoch, vote_granted=reply.granted
    )
    return vote.VoteResponse(
        topics=[vote.TopicDataResponse(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            vote.NodeEndpoint(node_id=reply.leader_id, host=each.host, port=each.port)
            for each in _places(reply.leader_address)
        ],
    )


def begin_response(reply: EpochReply) -> begin_quorum_epoch.BeginQuorumEpochResponse:
    partition = begin_quorum_epoch.PartitionDataResponse(
        error_code=reply.error, leader_id=reply.leader_id, leader_epoch=reply.epoch
    )
    return begin_quorum_epoch.BeginQuorumEpochResponse(
        topics=[begin_quorum_epoch.TopicDataResponse(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            begin_quorum_epoch.NodeEndpoint(node_id=reply.leader_id, host=each.host, port=each.port)
            for each in _places(reply.leader_address)
        ],
    )


def end_response(reply: EpochReply) -> end_quorum_epoch.EndQuorumEpochResponse:
    partition = end_quorum_epoch.PartitionDataResponse(
        error_code=reply.error, leader_id=reply.leader_id, leader_epoch=reply.epoch
    )
    return end_quorum_epoch.EndQuorumEpochResponse(
        topics=[end_quorum_epoch.TopicDataResponse(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[
            end_quorum_epoch.NodeEndpoint(node_id=reply.leader_id, host=each.host, port=each.port)
            for each in _places(reply.leader_address)
        ],
    )


def fetched_to_wire(reply: QuorumFetched, version: int) -> fetch.FetchResponse:
    partition = fetch.PartitionData(
        error_code=reply.error,
        high_watermark=reply.high_watermark,
        last_stable_offset=reply.high_watermark,
        log_start_offset=reply.start_offset,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=reply.leader_id, leader_epoch=reply.epoch),
        aborted_transactions=None,
        records=b"" if reply.records is None else reply.records,
    )
    if reply.diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(
            epoch=reply.diverging.epoch, end_offset=reply.diverging.end_offset
        )
    if reply.snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(end_offset=reply.snapshot.end_offset, epoch=reply.snapshot.epoch)
    topic = fetch.FetchableTopicResponse(partitions=[partition])
    if version >= FIRST_FETCH_WITH_IDS:
        topic.topic_id = TOPIC_ID
    else:
        topic.topic = TOPIC
    return fetch.FetchResponse(
        responses=[topic],
        node_endpoints=[
            fetch.NodeEndpoint(node_id=reply.leader_id, host=each.host, port=each.port)
            for each in _places(reply.leader_address)
        ],
    )


def snapshot_response(reply: SnapshotChunk) -> fetch_snapshot.FetchSnapshotResponse:
    partition = fetch_snapshot.PartitionSnapshotResponse(
        error_code=reply.error,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=reply.snapshot.end_offset, epoch=reply.snapshot.epoch),
        current_leader=fetch_snapshot.LeaderIdAndEpoch(leader_id=reply.leader_id, leader_epoch=reply.epoch),
        size=reply.size,
        position=reply.position,
        unaligned_records=b"" if reply.data is None else reply.data,
    )
    return fetch_snapshot.FetchSnapshotResponse(
        topics=[fetch_snapshot.TopicSnapshotResponse(name=TOPIC, partitions=[partition])],
        node_endpoints=[
            fetch_snapshot.NodeEndpoint(node_id=reply.leader_id, host=each.host, port=each.port)
            for each in _places(reply.leader_address)
        ],
    )


# The one partition.


def _only(topics: Sequence[Any], is_ours: Callable[[Any], bool], index_name: str) -> Any:
    if len(topics) == 1 and is_ours(topics[0]) and len(topics[0].partitions) == 1:
        partition = topics[0].partitions[0]
        if getattr(partition, index_name) == PARTITION:
            return partition
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"exactly partition {PARTITION} of {TOPIC} is spoken of here")


def _by_name(topic: Any) -> bool:
    return bool(topic.topic_name == TOPIC)


def _snapshot_name(topic: Any) -> bool:
    return bool(topic.name == TOPIC)


def _by_id(topic: Any) -> bool:
    return bool(topic.topic_id == TOPIC_ID)


def _places(address: Address | None) -> list[Address]:
    return [] if address is None else [address]


def _first_place(endpoints: Sequence[Any]) -> Address | None:
    return Address(endpoints[0].host, endpoints[0].port) if endpoints else None


def _code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
