"""Several nodes in memory: a quorum, brokers that are counted on, replication, and what happens when one is lost."""

from typing import Any

from klamm.errors import ErrorCode
from klamm.handlers import handler
from klamm.wire.apis import FETCH
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.node.cluster_world import ClusterWorld
from tests.node.requests import batch_of, produce_to

TOPIC = "invoice"


def create(world: ClusterWorld, through: int = 0, *, partitions: int = 1, factor: int = 3) -> None:
    topic = CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=factor)
    answer = world.client(through).ask(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))
    assert [each.error_code for each in answer.topics] == [0], answer.topics


def state(world: ClusterWorld, seen_by: int = 0, partition: int = 0) -> Any:
    found = world[seen_by].broker.image.partition(TOPIC, partition)
    assert found is not None
    return found


def produce(world: ClusterWorld, to: int, text: bytes, *, acks: int = -1, partition: int = 0) -> Any:
    topic_id = world[to].broker.image.topics[TOPIC].topic_id
    request = ProduceRequest(
        acks=acks,
        timeout_ms=3_000,
        topic_data=[
            TopicProduceData(
                topic_id=topic_id,
                partition_data=[PartitionProduceData(index=partition, records=batch_of(text))],
            )
        ],
    )
    return world.client(to).ask(request).responses[0].partition_responses[0]


def end_offsets(world: ClusterWorld, partition: int = 0) -> dict[int, int]:
    found = {}
    for member in world.alive:
        replica = member.broker.partitions.get(TOPIC, partition)
        if replica is not None:
            found[member.number] = replica.log.end_offset
    return found


def test_three_nodes_find_one_controller_and_all_are_counted_on(world: ClusterWorld) -> None:
    assert world.controller() is not None
    world.run(100.0)
    for member in world.alive:
        brokers = member.broker.image.brokers
        assert sorted(brokers) == [0, 1, 2]
        assert all(broker.is_active for broker in brokers.values())


def test_whoever_is_asked_creates_the_topic_and_knows_it_when_it_says_so(world: ClusterWorld) -> None:
    controller = world.controller()
    assert controller is not None
    other = next(number for number in (0, 1, 2) if number != controller.number)
    create(world, other)
    answer = world.client(other).ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]))
    assert answer.topics[0].error_code == 0
    assert sorted(answer.topics[0].partitions[0].isr_nodes) == [0, 1, 2]


def test_a_record_is_acknowledged_when_all_in_sync_replicas_have_it(world: ClusterWorld) -> None:
    create(world)
    leader = state(world).leader
    answer = produce(world, leader, b"one")
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert end_offsets(world) == {0: 1, 1: 1, 2: 1}


def test_followers_hear_once_of_what_many_producers_wrote_at_once(world: ClusterWorld) -> None:
    create(world)
    leader = world[state(world).leader]
    topic_id = leader.broker.image.topics[TOPIC].topic_id
    clients = [world.client(leader.number) for _ in range(20)]

    def fetches_for(producers: int) -> int:
        leader.answers_with(FETCH, handler(FETCH))
        asked = [(client, client.post(produce_to([(topic_id, 0)], b"x"))) for client in clients[:producers]]
        world.run_until(lambda: all(number in client.answers for client, number in asked))
        return leader.was_asked(FETCH)

    world.run(100.0)
    assert fetches_for(1) == fetches_for(20)


def test_a_follower_takes_no_writes(world: ClusterWorld) -> None:
    create(world)
    follower = next(number for number in (0, 1, 2) if number != state(world).leader)
    assert produce(world, follower, b"one").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_lost_leader_is_replaced_at_once_and_nothing_acknowledged_is_lost(world: ClusterWorld) -> None:
    create(world)
    old = state(world).leader
    for number in range(5):
        assert produce(world, old, b"%d" % number).error_code == 0
    world[old].kill()
    other = next(member.number for member in world.alive)
    took_ms = world.run_until(lambda: state(world, other).leader not in (old, -1), 1_000.0)
    assert took_ms < 200.0, f"{took_ms} ms, and no timeout has to run out: nobody listens there any more"
    new = state(world, other).leader
    world.run_until(lambda: state(world, new).leader == new)
    answer = produce(world, new, b"five")
    assert (answer.error_code, answer.base_offset) == (0, 5)


def test_a_lost_controller_is_replaced_at_once(world: ClusterWorld) -> None:
    old = world.controller()
    assert old is not None
    old.kill()
    took_ms = world.run_until(lambda: world.controller() is not None, 2_000.0)
    assert took_ms < 300.0, f"{took_ms} ms"
    create(world, next(member.number for member in world.alive), factor=2)


def test_a_broker_that_comes_back_catches_up_and_is_in_sync_again(world: ClusterWorld) -> None:
    create(world)
    old = state(world).leader
    assert produce(world, old, b"zero").error_code == 0
    world[old].kill()
    other = next(member.number for member in world.alive)
    world.run_until(lambda: state(world, other).leader not in (old, -1))
    new = state(world, other).leader
    world.run_until(lambda: state(world, new).leader == new)
    for number in range(3):
        assert produce(world, new, b"%d" % number).error_code == 0
    world[old].start()
    world.run_until(lambda: sorted(state(world, new).isr) == [0, 1, 2], 20_000.0)
    world.run(100.0)
    assert set(end_offsets(world).values()) == {4}


def test_preferred_leadership_returns(world: ClusterWorld) -> None:
    create(world, partitions=3)
    preferred = [state(world, partition=index).replicas[0] for index in range(3)]
    world[preferred[0]].kill()
    other = next(member.number for member in world.alive)
    world.run_until(lambda: state(world, other).leader != preferred[0])
    world[preferred[0]].start()
    world.run_until(lambda: state(world, other).leader == preferred[0], 60_000.0)


def test_a_frozen_leader_is_replaced_and_acknowledges_nothing_when_it_wakes(world: ClusterWorld) -> None:
    create(world)
    old = state(world).leader
    assert produce(world, old, b"zero").error_code == 0
    zombie = world.client(old)
    world[old].is_frozen = True
    other = next(number for number in (0, 1, 2) if number != old)
    world.run_until(lambda: state(world, other).leader not in (old, -1), 20_000.0)
    topic_id = world[old].broker.image.topics[TOPIC].topic_id
    data = PartitionProduceData(index=0, records=batch_of(b"of the zombie"))
    number = zombie.post(
        ProduceRequest(
            acks=-1, timeout_ms=2_000, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
        )
    )
    world.run(10.0)
    world[old].thaw()
    world.run(5_000.0)
    if number in zombie.answers:
        assert zombie.answers[number].responses[0].partition_responses[0].error_code != 0
    new = state(world, other).leader
    assert produce(world, new, b"one").base_offset == 1
    world.run_until(lambda: sorted(state(world, new).isr) == [0, 1, 2], 20_000.0)
    assert set(end_offsets(world).values()) == {2}


def test_a_node_that_stops_hands_over_first(world: ClusterWorld) -> None:
    create(world, partitions=6)
    stopping = state(world).leader
    other = next(number for number in (0, 1, 2) if number != stopping)
    member = world[stopping]
    member.perform(member.node.begin_to_stop(world.now))
    world.run_until(lambda: member.has_stopped, 5_000.0)
    world.run(50.0)
    leaders = {state(world, other, index).leader for index in range(6)}
    assert stopping not in leaders and -1 not in leaders


def test_a_consumer_sees_what_is_committed_and_nothing_else(world: ClusterWorld) -> None:
    create(world)
    leader = state(world).leader
    assert produce(world, leader, b"zero").error_code == 0
    topic_id = world[leader].broker.image.topics[TOPIC].topic_id
    for other in range(3):
        if other != leader:
            world.cut(leader, other)
    producing = world.client(leader)
    data = PartitionProduceData(index=0, records=batch_of(b"one"))
    producing.post(
        ProduceRequest(acks=1, timeout_ms=500, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])])
    )
    world.run(20.0)
    fetch = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic_id=topic_id,
                partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
    )
    answer = world.client(leader).ask(fetch).responses[0].partitions[0]
    assert answer.high_watermark == 1
    assert world[leader].broker.partitions.get(TOPIC, 0).log.end_offset == 2  # type: ignore[union-attr]


def test_a_broker_that_is_found_dead_is_not_named_as_leader_while_the_controller_makes_up_its_mind(
    world: ClusterWorld,
) -> None:
    """Else a client that asks a millisecond after it lost its leader dials the dead one again, and waits."""
    create(world, partitions=3)
    world.run(50.0)
    controller = world.controller()
    assert controller is not None
    old, other = (number for number in (0, 1, 2) if number != controller.number)
    index = next(index for index in range(3) if state(world, partition=index).leader == old)
    world.isolate(controller.number)
    world[old].kill()
    world.run(2.0)
    assert state(world, other, index).leader == old, "the image does not know yet"
    answer = world.client(other).ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]))
    partition = answer.topics[0].partitions[index]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert old in [broker.node_id for broker in answer.brokers], (
        "librdkafka tears down what vanishes, and loses a second"
    )


def test_who_asks_in_the_moment_of_a_death_hears_the_news(world: ClusterWorld) -> None:
    """The connection to the leader broke, and it is being dialled again: the answer waits for what comes of that."""
    create(world, partitions=3)
    world.run(50.0)
    old = state(world).leader
    other = next(number for number in (0, 1, 2) if number != old)
    client = world.client(other)
    world[old].kill()
    world.run_until(lambda: bool(world[other].broker.absent.suspects), 10.0)
    answer = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]))
    assert answer.topics[0].partitions[0].leader_id != old
    assert not world[other].broker.absent.suspects


def test_a_fenced_broker_is_listed_for_a_while(world: ClusterWorld) -> None:
    create(world)
    old = state(world).leader
    world[old].kill()
    other = next(member.number for member in world.alive)
    world.run_until(lambda: world[other].broker.image.brokers[old].fenced)
    request = MetadataRequest(topics=[])
    assert old in [broker.node_id for broker in world.client(other).ask(request).brokers]
    world.run(11_000.0)
    assert old not in [broker.node_id for broker in world.client(other).ask(request).brokers]


def test_a_request_that_was_to_be_passed_on_is_answered_by_the_node_that_becomes_controller_meanwhile(
    world: ClusterWorld,
) -> None:
    """Both survivors are asked as the controller dies: one of them will have to pass it on to itself."""
    old = world.controller()
    assert old is not None
    old.kill()
    asked = []
    for number in (0, 1, 2):
        if number != old.number:
            client = world.client(number)
            topic = CreatableTopic(name=f"{TOPIC}-{number}", num_partitions=1, replication_factor=1)
            asked.append((client, client.post(CreateTopicsRequest(topics=[topic], timeout_ms=5_000))))
    world.run_until(lambda: all(number in client.answers for client, number in asked), 2_000.0)
    for client, number in asked:
        assert [each.error_code for each in client.answers[number].topics] == [0]
