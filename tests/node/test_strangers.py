"""What counts because a certain broker says it, said by somebody else.

A stranger knows everything that is no secret: ids, epochs, incarnations, directories, and where partitions end. It does
not answer at a broker's address.
"""

from typing import Any

import pytest

from klamm.controller.features import SUPPORTED
from klamm.errors import ErrorCode
from klamm.node.peers import Purpose
from klamm.wire.claims import CLAIM, claim_bytes
from klamm.wire.frames import encoded_request
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from klamm.wire.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from klamm.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.node.cluster_world import FIRST_PORT, ClusterClient, ClusterWorld, Member
from tests.node.requests import produce
from tests.node.world import api_of

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TOPIC = "orders"
HEARTBEAT, FETCH = 1, 17


@pytest.fixture
def world() -> ClusterWorld:
    world = ClusterWorld(3, min_insync_replicas="2", num_partitions="1", default_replication_factor="3")
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=3)
    created = world.client(0).ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
    assert created.topics[0].error_code == ErrorCode.NONE
    world.run_until(lambda: len(state_of(world).isr) == 3)
    world.run(200.0)
    return world


def image(world: ClusterWorld) -> Any:
    controller = world.controller()
    assert controller is not None
    return controller.broker.image


def state_of(world: ClusterWorld) -> Any:
    topics = image(world).topics
    return topics[TOPIC].partitions[0]


def roles(world: ClusterWorld) -> tuple[int, int, int]:
    """The partition's leader, a follower that does not lead the quorum, and the controller."""
    controller = world.controller()
    assert controller is not None
    leader = state_of(world).leader
    follower = next(each for each in world.members if each not in (leader, controller.number))
    return leader, follower, controller.number


def forged_fetch(world: ClusterWorld, broker_id: int, offset: int) -> FetchRequest:
    topic = image(world).topics[TOPIC]
    epoch = topic.partitions[0].leader_epoch
    wanted = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=epoch, log_start_offset=0
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=broker_id, replica_epoch=image(world).brokers[broker_id].epoch),
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=topic.topic_id, partitions=[wanted])],
    )


def say_with_claim(world: ClusterWorld, client: ClusterClient, request: Any, version: int, claim: bytes) -> Any:
    number, api = next(client._next), api_of(request)
    client._asked[number] = (api, version)
    world.send(client, 1, b"".join(map(bytes, encoded_request(api, version, number, "stranger", request, claim))))
    world.run_until(lambda: number in client.answers or not client.is_open)
    assert number in client.answers, "the connection was closed"
    return client.answers.pop(number)


def registration(world: ClusterWorld, broker_id: int, port: int) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=world[0].broker.cluster_id,
        incarnation_id=bytes([9]) * 16,
        listeners=[Listener(name="PLAINTEXT", host="127.0.0.1", port=port)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        log_dirs=[bytes([77]) * 16],
    )


@pytest.mark.parametrize("has_claim", [False, True])
def test_a_fetch_in_the_name_of_a_follower_that_hangs_moves_nothing(world: ClusterWorld, has_claim: bool) -> None:
    leader, follower, _ = roles(world)
    world[follower].is_frozen = True
    producer, stranger = world.client(leader), world.client(leader)
    number = producer.post(produce(image(world).topics[TOPIC].topic_id, b"precious"))
    world.run(50.0)
    assert number not in producer.answers, "nobody has it besides those who are not enough"
    claim = claim_bytes(CLAIM, follower, b"0123456789abcdef") if has_claim else b"\0"
    answer = say_with_claim(world, stranger, forged_fetch(world, follower, 1), FETCH, claim)
    assert answer.error_code == REFUSED and not answer.responses
    world.run(50.0)
    partition = world[leader].broker.partitions.get(TOPIC, 0)
    assert partition is not None and partition.high_watermark == 0 and number not in producer.answers
    world[follower].thaw()
    world.run_until(lambda: number in producer.answers)


def test_a_follower_does_not_confirm_what_it_did_not_say(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    claim = claim_bytes(CLAIM, follower, b"0123456789abcdef")
    answer = say_with_claim(world, world.client(leader), forged_fetch(world, follower, 0), FETCH, claim)
    assert answer.error_code == REFUSED


def test_a_token_that_one_node_was_shown_is_worth_nothing_at_another(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    channel = world[follower].node.cluster.peers._channels[leader, Purpose.REPLICATION]
    assert channel.token is not None
    claim = claim_bytes(CLAIM, follower, channel.token)
    here = say_with_claim(world, world.client(leader), forged_fetch(world, follower, 0), FETCH, claim)
    assert here.error_code == ErrorCode.NONE, "only the leader itself was shown it"
    third = next(each for each in world.members if each not in (leader, follower))
    there = say_with_claim(world, world.client(third), forged_fetch(world, follower, 0), FETCH, claim)
    assert there.error_code == REFUSED


@pytest.mark.parametrize("version", [4, 6, 7, 12, 14])
def test_a_replica_that_tells_no_epoch_is_refused(world: ClusterWorld, version: int) -> None:
    leader, follower, _ = roles(world)
    request = forged_fetch(world, follower, 0)
    request.replica_id, request.topics[0].topic = follower, TOPIC
    answer = world.client(leader).ask(request, version)
    if version < 7:
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    else:
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_fetch_of_an_earlier_life_is_refused(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    peers = world[follower].node.cluster.peers
    claim = claim_bytes(CLAIM, follower, peers._channels[leader, Purpose.REPLICATION].token or b"")
    request = forged_fetch(world, follower, 0)
    request.replica_state.replica_epoch -= 1
    assert say_with_claim(world, world.client(leader), request, FETCH, claim).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_stranger_that_answers_nowhere_is_not_registered_and_gets_no_partitions(world: ClusterWorld) -> None:
    *_, controller = roles(world)
    stranger = world.client(controller)
    request = registration(world, 99, FIRST_PORT + 99)
    assert stranger.ask(request, 4).error_code == REFUSED
    claim = claim_bytes(CLAIM, 99, b"0123456789abcdef")
    assert say_with_claim(world, world.client(controller), request, 4, claim).error_code == REFUSED
    topic = CreatableTopic(name="wide", num_partitions=8, replication_factor=3)
    world.client(0).ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
    world.run(100.0)
    assert 99 not in image(world).brokers
    assert all(99 not in each.replicas for each in image(world).topics["wide"].partitions)


def test_nobody_registers_as_a_broker_that_answers_at_another_address(world: ClusterWorld) -> None:
    """Its directory is no secret either, and was enough to take its place."""
    _, follower, _ = roles(world)
    before = image(world).brokers[follower]
    thief = Member(
        world, follower, world[follower].overrides | {"listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + 50}"}
    )
    thief.number, thief.lives = 50, 1_000
    for path in ("meta.properties",):
        thief.disk.write_whole(path, world[follower].disk.read_whole(path))
    world.members[50] = thief
    # (As a process that knows the port under which it is reached.)
    thief.start()
    world.run(3_000.0)
    del world.members[50]
    assert image(world).brokers[follower] == before and image(world).brokers[follower].is_active


def test_heartbeats_in_the_name_of_another_change_nothing(world: ClusterWorld) -> None:
    _, follower, controller = roles(world)
    epoch = image(world).brokers[follower].epoch
    for wish in ("want_shut_down", "want_fence"):
        beat = BrokerHeartbeatRequest(
            broker_id=follower, broker_epoch=epoch, current_metadata_offset=image(world).offset, **{wish: True}
        )
        assert world.client(controller).ask(beat, HEARTBEAT).error_code == REFUSED
    world.run(100.0)
    assert image(world).brokers[follower].is_active and not image(world).brokers[follower].in_controlled_shutdown


def test_nobody_else_changes_in_sync_replicas_or_takes_producer_ids(world: ClusterWorld) -> None:
    leader, _, controller = roles(world)
    brokers, topic, state = image(world).brokers, image(world).topics[TOPIC], state_of(world)
    partition = PartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=leader, broker_epoch=brokers[leader].epoch)],
        partition_epoch=state.partition_epoch,
    )
    wish = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=brokers[leader].epoch,
        topics=[TopicData(topic_id=topic.topic_id, partitions=[partition])],
    )
    stranger = world.client(controller)
    assert stranger.ask(wish, 3).error_code == REFUSED
    request = AllocateProducerIdsRequest(broker_id=leader, broker_epoch=brokers[leader].epoch)
    assert stranger.ask(request, 0).error_code == REFUSED
    assert len(state_of(world).isr) == 3


def test_a_newcomer_is_counted_on_once_it_has_fetched_the_metadata(world: ClusterWorld) -> None:
    """What it says of itself in a heartbeat is not enough."""
    quorum = world[roles(world)[2]].broker.quorum
    fetched_end = type(quorum).fetched_end
    seen: list[int] = []

    def spy(self: Any, node_id: int) -> int:
        found = fetched_end(self, node_id)
        if node_id == 7 and 7 in image(world).brokers and image(world).brokers[7].fenced:
            seen.append(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(quorum), "fetched_end", spy)
        newcomer = Member(
            world,
            7,
            world[0].overrides
            | {"node.id": "7", "process.roles": "broker", "listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + 7}"},
        )
        world.members[7] = newcomer
        newcomer.start()
        took_ms = world.run_until(lambda: newcomer.is_serving)
    assert image(world).brokers[7].is_active and seen and seen[-1] > image(world).brokers[7].epoch
    assert took_ms < 100.0, "of simulated time"


def test_who_asks_for_an_epochs_end_as_a_replica_hears_what_anybody_does(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    answers = []
    for replica_id in (follower, 99, -1):
        asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
        topic = OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])
        request = OffsetForLeaderEpochRequest(replica_id=replica_id, topics=[topic])
        answers.append(world.client(leader).ask(request, 4).topics)
    assert answers[0] == answers[1] == answers[2]
    partition = world[leader].broker.partitions.get(TOPIC, 0)
    assert partition is not None and partition.leading is not None and 99 not in partition.leading.followers


def test_a_crowd_of_made_up_brokers_keeps_no_broker_from_being_confirmed(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    request = forged_fetch(world, follower, 0)
    for number in range(1_200):
        crowd, made_up = world.client(leader), 1_000 + number if number % 2 else 2_000
        request.replica_state.replica_id = made_up
        claim = claim_bytes(CLAIM, made_up, b"0123456789abcdef")
        pieces = encoded_request(api_of(request), FETCH, 1, "stranger", request, claim)
        crowd._asked[1] = (api_of(request), FETCH)
        world.send(crowd, 1, b"".join(map(bytes, pieces)))
    world.run(1.0)
    channel = world[follower].node.cluster.peers._channels[leader, Purpose.REPLICATION]
    claim = claim_bytes(CLAIM, follower, channel.token or b"")
    began_ms = world.now_ms
    answer = say_with_claim(world, world.client(leader), forged_fetch(world, follower, 0), FETCH, claim)
    assert answer.error_code == ErrorCode.NONE and world.now_ms - began_ms < 5.0, "of simulated time"
    world.run(3_000.0)
    assert not world[leader].node.cluster.confirmations._waiting


def test_a_held_back_connection_does_not_wait_for_ever(world: ClusterWorld) -> None:
    leader, follower, _ = roles(world)
    request = forged_fetch(world, follower, 0)
    request.replica_state.replica_id = 98
    claim = claim_bytes(CLAIM, 98, b"0123456789abcdef")
    assert say_with_claim(world, world.client(leader), request, FETCH, claim).error_code == REFUSED
    own = claim_bytes(CLAIM, leader, b"0123456789abcdef")
    request.replica_state.replica_id = leader
    assert say_with_claim(world, world.client(leader), request, FETCH, own).error_code == REFUSED


@pytest.mark.parametrize("epoch_ahead", [0, 1])
def test_a_crowd_in_one_brokers_name_does_not_keep_it_from_being_confirmed(
    world: ClusterWorld, epoch_ahead: int
) -> None:
    """Sixty-four connections that name an epoch nobody has heard of wait for it, and took all places of that broker."""
    leader, follower, _ = roles(world)
    request = forged_fetch(world, follower, 0)
    request.replica_state.replica_epoch += epoch_ahead
    for _ in range(100):
        crowd = world.client(leader)
        claim = claim_bytes(CLAIM, follower, b"0123456789abcdef")
        pieces = encoded_request(api_of(request), FETCH, 1, "stranger", request, claim)
        crowd._asked[1] = (api_of(request), FETCH)
        world.send(crowd, 1, b"".join(map(bytes, pieces)))
    world.run(1.0)
    channel = world[follower].node.cluster.peers._channels[leader, Purpose.REPLICATION]
    claim = claim_bytes(CLAIM, follower, channel.token or b"")
    answer = say_with_claim(world, world.client(leader), forged_fetch(world, follower, 0), FETCH, claim)
    assert answer.error_code == ErrorCode.NONE
