"""Several nodes in memory when others answer what nobody understands, or not at all.

Each story was once told by a reviewer, with another end."""

import pytest

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.controller.names import CLUSTER_METADATA
from klamm.errors import ErrorCode
from klamm.handlers import fetch
from klamm.node.facts import AnswerNotUnderstood, Registered, RegistrationRefused
from klamm.wire.apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    FETCH,
)
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from klamm.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from klamm.wire.messages.alter_partition import PartitionDataResponse as AlteredPartition
from klamm.wire.messages.alter_partition import TopicDataResponse as AlteredTopic
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from klamm.wire.messages.broker_registration import BrokerRegistrationResponse
from klamm.wire.messages.fetch import FetchRequest, FetchResponse
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.metadata import MetadataRequest
from klamm.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.node.cluster_world import ClusterWorld
from tests.node.test_cluster import create, produce, state
from tests.node.troubled import OF_THE_FUTURE, SESSION_MS, another, controller_of, has_marker

# Answers of others.


def test_a_node_that_is_refused_for_a_reason_it_does_not_know_says_so_and_tries_again(four: ClusterWorld) -> None:
    """The controller may be newer than we are."""
    controller, node = controller_of(four), four[3]

    def refusing(request: object, call: Call) -> Answer:
        return Reply(BrokerRegistrationResponse(error_code=OF_THE_FUTURE))

    node.kill()
    controller.answers_with(BROKER_REGISTRATION, refusing)
    node.start()
    four.run(1_000.0)
    assert RegistrationRefused("UNKNOWN_SERVER_ERROR") in node.told
    controller.answers_as_ever()
    four.run_until(lambda: node.is_serving, SESSION_MS)


def test_a_follower_survives_an_error_of_its_leader_that_it_does_not_know(world: ClusterWorld) -> None:
    create(world)
    leader = world[state(world).leader]

    def erring(request: FetchRequest, call: Call) -> Answer:
        answer = fetch.handle(request, call)
        if isinstance(answer, Reply) and isinstance(answer.response, FetchResponse):
            for partition in (each for topic in answer.response.responses for each in topic.partitions):
                partition.error_code = OF_THE_FUTURE
        return answer

    leader.answers_with(FETCH, erring)
    world.run(2_000.0)
    leader.answers_as_ever()
    told = [fact for member in world.members.values() for fact in member.told]
    assert not any(isinstance(fact, AnswerNotUnderstood) for fact in told), "as if it were a known one"
    assert produce(world, leader.number, b"zero").error_code == ErrorCode.NONE


def test_a_leader_survives_an_error_of_the_controller_that_it_does_not_know(four: ClusterWorld) -> None:
    """It asks to be rid of a follower that is gone, and then asks again."""
    create(four, partitions=4, factor=4)
    controller = controller_of(four)
    index = next(index for index in range(4) if state(four, partition=index).leader not in (controller.number, 3))
    leader = four[state(four, partition=index).leader]

    def erring(request: AlterPartitionRequest, call: Call) -> Answer:
        topics = [
            AlteredTopic(
                topic_id=topic.topic_id,
                partitions=[
                    AlteredPartition(partition_index=each.partition_index, error_code=OF_THE_FUTURE)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return Reply(AlterPartitionResponse(topics=topics))

    four[3].kill()
    four.run_until(lambda: 3 not in state(four, leader.number, index).isr)
    controller.answers_with(ALTER_PARTITION, erring)
    four[3].start()
    four.run_until(lambda: controller.was_asked(ALTER_PARTITION) >= 2, SESSION_MS)
    controller.answers_as_ever()
    four.run_until(lambda: 3 in state(four, leader.number, index).isr, 2 * SESSION_MS)


def test_a_client_hears_that_producer_ids_are_refused_for_a_reason_that_nobody_knows(four: ClusterWorld) -> None:
    def refusing(request: object, call: Call) -> Answer:
        return Reply(AllocateProducerIdsResponse(error_code=OF_THE_FUTURE))

    controller_of(four).answers_with(ALLOCATE_PRODUCER_IDS, refusing)
    answer = four.client(3).ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
    assert answer.error_code not in (ErrorCode.NONE, OF_THE_FUTURE)


def test_metadata_is_told_at_once_again_when_the_network_swallows_the_second_call(four: ClusterWorld) -> None:
    """Whether it is dead is not to be found out. A kernel tries for two minutes, and nobody else may wait so long."""
    asking, suspect = four[3], another(four, controller_of(four))
    create(four, partitions=8, factor=2)
    four.run(500.0)
    four.swallow_dials(asking.number, suspect.number)
    broken = [number for number, link in asking.links.items() if number < 0 and link.leads_to(suspect)]
    assert broken, "it follows some partition of it"
    for number in broken:
        four.break_link(asking.links[number], suspect)
    four.run(2 * four.latency_ms)
    assert asking.broker.absent.suspects == {suspect.number}
    four.run(2_000.0)
    began_ms = four.now_ms
    four.client(asking.number).ask(MetadataRequest(topics=[]))
    assert four.now_ms - began_ms < 1.0


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR, OF_THE_FUTURE])
def test_a_heartbeat_that_failed_is_no_reason_to_register_again(four: ClusterWorld, code: int) -> None:
    """The controller has a trouble of its own. It knows this life of ours as well as before."""
    controller, node = controller_of(four), four[3]
    epoch = node.node.cluster.membership.epoch

    def failing(request: object, call: Call) -> Answer:
        return Reply(BrokerHeartbeatResponse(error_code=code))

    controller.answers_with(BROKER_HEARTBEAT, failing)
    four.run_until(lambda: controller.was_asked(BROKER_HEARTBEAT) > 8, SESSION_MS)
    controller.answers_as_ever()
    four.run(2_000.0)
    assert [type(fact) for fact in node.told].count(Registered) == 1
    assert node.node.cluster.membership.epoch == epoch


def test_a_broker_that_the_controller_no_longer_knows_registers_again(four: ClusterWorld) -> None:
    controller, node = controller_of(four), four[3]
    four.client(controller.number).ask(UnregisterBrokerRequest(broker_id=3))
    four.run_until(lambda: [type(fact) for fact in node.told].count(Registered) == 2, SESSION_MS)


def test_a_node_stops_cleanly_though_the_controllers_disk_is_full(four: ClusterWorld) -> None:
    """What it led stays with it, and nothing of it has to be recovered."""
    create(four)
    controller, node = controller_of(four), four[3]
    controller.disk_fails("append", CLUSTER_METADATA, full=True)
    node.begin_to_stop()
    four.run_until(lambda: node.has_stopped)
    assert has_marker(node)


# Addresses.


def test_a_node_starts_again_after_the_quorum_was_given_another_address(world: ClusterWorld) -> None:
    """The cluster's id was made of the addresses once. It does not change when they do."""
    node = world[2]
    cluster_id = node.broker.cluster_id
    node.begin_to_stop()
    world.run_until(lambda: node.has_stopped)
    node.overrides["controller.quorum.voters"] += ",3@127.0.0.1:9003"
    node.start()
    world.run_until(lambda: node.is_serving)
    assert node.broker.cluster_id == cluster_id


# The world itself.


def test_what_was_sent_before_a_connection_was_closed_arrives(world: ClusterWorld) -> None:
    """A node that answers and closes in one step is heard to the end."""
    client = world.client(0)
    number = client.post(MetadataRequest(topics=[]))
    world.run(world.latency_ms)
    world[0].kill()
    world.run_until(lambda: not client.is_open)
    assert number in client.answers
