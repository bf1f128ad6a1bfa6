"""The quorum's values travel in Kafka's messages and arrive as they were; what is no such message is refused."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.codec.compiler import decode, encode
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers import quorum_messages as messages
from klamm.ids import NO_BROKER
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
    Request,
    SnapshotChunk,
    SnapshotFetch,
    SnapshotId,
    VoteReply,
    VoteRequest,
)
from klamm.wire.apis import request_type, response_type

numbers = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
keys = st.builds(ReplicaKey, numbers, st.binary(min_size=16, max_size=16))
positions = st.builds(LogPosition, numbers, offsets)
snapshots = st.builds(SnapshotId, offsets, numbers)
clusters = st.none() | st.just("a-cluster")
addresses = st.builds(Address, st.just("host"), st.integers(0, 65535))
errors = st.sampled_from([ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.INVALID_VOTER_KEY])

requests: st.SearchStrategy[Request] = st.one_of(
    st.builds(VoteRequest, clusters, keys, keys, numbers, positions, st.booleans()),
    st.builds(BeginEpoch, clusters, keys, numbers, numbers, st.none() | addresses),
    st.builds(EndEpoch, clusters, numbers, numbers, st.lists(keys, max_size=4), st.none() | addresses),
    st.builds(QuorumFetch, clusters, keys, numbers, offsets, numbers, offsets, numbers, numbers),
    st.builds(SnapshotFetch, clusters, keys, numbers, snapshots, offsets, numbers),
)


def asked(request: Request) -> Request | None:
    """Over the wire and back."""
    key, version, message = messages.to_wire(Outgoing(1, "host", 9090, request, 1.0))
    arrived: Any = decode(request_type(key), version, encode(message, version))
    match request:
        case VoteRequest():
            return messages.vote_request(arrived)
        case BeginEpoch():
            return messages.begin_epoch(arrived)
        case EndEpoch():
            return messages.end_epoch(arrived, version)
        case QuorumFetch():
            return messages.quorum_fetch(arrived, version)
        case SnapshotFetch():
            return messages.snapshot_fetch(arrived)


@settings(deadline=None)
@given(requests)
def test_requests_arrive_as_they_were(request: Request) -> None:
    assert asked(request) == request


def answered(request: Request, reply: ReplyValue) -> ReplyValue:
    outgoing = Outgoing(1, "host", 9090, request, 1.0)
    key, version, _ = messages.to_wire(outgoing)
    response: object
    match reply:
        case VoteReply():
            response = messages.vote_response(reply)
        case EpochReply():
            ends = isinstance(request, EndEpoch)
            response = messages.end_response(reply) if ends else messages.begin_response(reply)
        case QuorumFetched():
            response = messages.fetched_to_wire(reply, version)
        case SnapshotChunk():
            response = messages.snapshot_response(reply)
    return messages.reply_from_wire(outgoing, decode(response_type(key), version, encode(response, version)))


KEY = ReplicaKey(1, bytes(range(16)))
VOTE = VoteRequest(None, KEY, KEY, 1, LogPosition(0, 0))
BEGIN = BeginEpoch(None, KEY, 1, 1)
END = EndEpoch(None, 1, 1)
FETCH = QuorumFetch(None, KEY, 1, 0, 0, 0, 100, 100)
CHUNK = SnapshotFetch(None, KEY, 1, SnapshotId(4, 1), 0, 100)


@settings(deadline=None)
@given(numbers, st.booleans(), numbers, st.none() | addresses, errors)
def test_votes_arrive_as_they_were(
    epoch: int, granted: bool, leader: int, address: Address | None, error: ErrorCode
) -> None:
    reply = VoteReply(epoch, granted, leader, address, error)
    assert answered(VOTE, reply) == reply


@settings(deadline=None)
@given(numbers, numbers, st.none() | addresses, errors, st.sampled_from([BEGIN, END]))
def test_answers_about_epochs_arrive_as_they_were(
    epoch: int, leader: int, address: Address | None, error: ErrorCode, request: Request
) -> None:
    reply = EpochReply(epoch, leader, address, error)
    assert answered(request, reply) == reply


@pytest.mark.parametrize(
    "reply",
    [
        QuorumFetched(4, 1, Address("host", 9090), ErrorCode.NONE, 7, 0, b"records"),
        QuorumFetched(4, 1, None, ErrorCode.NONE, 7, 0, diverging=LogPosition(3, 12)),
        QuorumFetched(4, 1, None, ErrorCode.NONE, 7, 5, snapshot=SnapshotId(12, 3)),
        QuorumFetched(4, NO_BROKER, None, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_fetched_records_arrive_as_they_were(reply: QuorumFetched) -> None:
    assert answered(FETCH, reply) == reply


def test_a_piece_of_a_snapshot_arrives_as_it_was() -> None:
    reply = SnapshotChunk(4, 1, Address("h", 1), ErrorCode.NONE, SnapshotId(4, 1), 100, 10, b"piece")
    assert answered(CHUNK, reply) == reply


@pytest.mark.parametrize("request_", [VOTE, BEGIN, END, CHUNK])
@pytest.mark.parametrize("break_it", ["no topics", "no partitions", "another topic", "another partition", "two"])
def test_a_request_about_anything_else_is_refused(request_: Request, break_it: str) -> None:
    key, version, message = messages.to_wire(Outgoing(1, "host", 9090, request_, 1.0))
    broken: Any = message
    topic = broken.topics[0]
    partition = topic.partitions[0]
    match break_it:
        case "no topics":
            broken.topics = []
        case "no partitions":
            topic.partitions = []
        case "another topic":
            setattr(topic, "name" if key == messages.FETCH_SNAPSHOT else "topic_name", "invoice")
        case "another partition":
            setattr(partition, "partition" if key == messages.FETCH_SNAPSHOT else "partition_index", 1)
        case "two":
            topic.partitions = [partition, partition]
    understand: dict[int, Any] = {
        messages.VOTE: messages.vote_request,
        messages.BEGIN_QUORUM_EPOCH: messages.begin_epoch,
        messages.END_QUORUM_EPOCH: lambda each: messages.end_epoch(each, version),
        messages.FETCH_SNAPSHOT: messages.snapshot_fetch,
    }
    with pytest.raises(KafkaError) as refused:
        understand[key](decode(request_type(key), version, encode(broken, version)))
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_a_consumers_fetch_and_a_partitions_fetch_are_none_of_the_quorums() -> None:
    _, version, message = messages.to_wire(Outgoing(1, "host", 9090, FETCH, 1.0))
    fetch: Any = message
    assert messages.quorum_fetch(fetch, version) is not None
    fetch.replica_state.replica_id = -1
    assert messages.quorum_fetch(fetch, version) is None
    fetch.replica_state.replica_id = 1
    fetch.topics[0].topic_id = bytes(16)
    assert messages.quorum_fetch(fetch, version) is None
    fetch.topics = []
    assert messages.quorum_fetch(fetch, version) is None


def test_a_reply_that_says_nothing_is_no_reply() -> None:
    for request in (VOTE, BEGIN, END, FETCH, CHUNK):
        outgoing = Outgoing(1, "host", 9090, request, 1.0)
        response = response_type(messages.to_wire(outgoing)[0])()
        with pytest.raises(KafkaError):
            messages.reply_from_wire(outgoing, response)
