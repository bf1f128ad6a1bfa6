"""The controller's APIs over the wire: what they ask of it, and what becomes of its decisions."""

from typing import Any

import pytest

from klamm.broker.answer import Applied, Elsewhere, Later, Reply
from klamm.controller.features import SUPPORTED
from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from klamm.wire.messages.alter_configs import AlterConfigsRequest
from klamm.wire.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from klamm.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from klamm.wire.messages.create_partitions import CreatePartitionsRequest
from klamm.wire.messages.create_topics import CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from klamm.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from klamm.wire.messages.unregister_broker import UnregisterBrokerRequest
from klamm.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.controller.world import CLUSTER
from tests.handlers.controlled import NOT_CONTROLLER, Controlled


@pytest.fixture
def here() -> Controlled:
    controlled = Controlled()
    controlled.world.create("invoice", assignments=[(0, [0, 1]), (1, [1, 0])])
    return controlled


FOR_ANYBODY: dict[str, tuple[object, int]] = {
    "create_topics": (CreateTopicsRequest(), 7),
    "delete_topics": (DeleteTopicsRequest(), 6),
    "create_partitions": (CreatePartitionsRequest(), 3),
    "alter_configs": (AlterConfigsRequest(), 2),
    "incremental_alter_configs": (IncrementalAlterConfigsRequest(), 1),
    "elect_leaders": (ElectLeadersRequest(topic_partitions=[]), 2),
    "alter_partition_reassignments": (AlterPartitionReassignmentsRequest(), 1),
    "list_partition_reassignments": (ListPartitionReassignmentsRequest(), 0),
    "unregister_broker": (UnregisterBrokerRequest(broker_id=0), 0),
    "update_features": (UpdateFeaturesRequest(), 2),
}
FOR_BROKERS: dict[str, tuple[object, int]] = {
    "broker_registration": (BrokerRegistrationRequest(), 4),
    "broker_heartbeat": (BrokerHeartbeatRequest(), 1),
    "alter_partition": (AlterPartitionRequest(), 3),
    "allocate_producer_ids": (AllocateProducerIdsRequest(), 0),
}


@pytest.mark.parametrize("api", FOR_ANYBODY)
def test_any_broker_takes_what_clients_ask_and_passes_it_on(here: Controlled, api: str) -> None:
    here.is_here = False
    assert isinstance(here.answer(api, *FOR_ANYBODY[api]), Elsewhere)


@pytest.mark.parametrize("api", FOR_BROKERS)
def test_brokers_are_told_that_the_controller_is_elsewhere(here: Controlled, api: str) -> None:
    here.is_here = False
    assert here.ask(api, *FOR_BROKERS[api]).error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("api", FOR_BROKERS)
def test_who_merely_names_a_broker_is_refused(here: Controlled, api: str) -> None:
    here.is_believed = False
    assert here.ask(api, *FOR_BROKERS[api]).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def registration(broker: int, cluster: str = CLUSTER) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=cluster,
        incarnation_id=bytes([7]) * 16,
        listeners=[Listener(name="PLAINTEXT", host="10.0.0.9", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in SUPPORTED.items()
        ],
        rack="R9",
        log_dirs=[bytes([77]) * 16],
    )


def beat(here: Controlled, broker: int, **wishes: bool) -> Any:
    world = here.world
    request = BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=world.broker(broker).epoch,
        current_metadata_offset=world.next_offset - 1,
        **wishes,
    )
    return here.ask("broker_heartbeat", request, 1)


def test_a_broker_registers_and_is_counted_on_after_a_heartbeat(here: Controlled) -> None:
    offset = here.world.next_offset
    answer = here.answer("broker_registration", registration(9), 4)
    assert isinstance(answer, Later) and answer.until == Applied(offset)
    response: Any = answer.then(here.world.now, True)
    assert (response.error_code, response.broker_epoch) == (ErrorCode.NONE, offset)
    assert here.world.broker(9).rack == "R9" and here.world.broker(9).endpoints[0].host == "10.0.0.9"
    heard = beat(here, 9)
    assert (heard.error_code, heard.is_caught_up, heard.is_fenced, heard.should_shut_down) == (0, True, False, False)
    assert here.world.broker(9).is_active
    assert isinstance(here.answer("broker_heartbeat", BrokerHeartbeatRequest(broker_id=9), 1), Reply)


def test_a_broker_of_another_cluster_hears_so(here: Controlled) -> None:
    response = here.ask("broker_registration", registration(9, "another"), 4)
    assert (response.error_code, response.broker_epoch) == (ErrorCode.INCONSISTENT_CLUSTER_ID, -1)


def test_a_registration_that_is_not_committed_in_time_says_so(here: Controlled) -> None:
    response = here.ask("broker_registration", registration(9), 4, in_time=False)
    assert (response.error_code, response.broker_epoch) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_a_broker_that_stops_is_told_when_it_may(here: Controlled) -> None:
    assert not beat(here, 1, want_shut_down=True).should_shut_down
    for broker in (0, 2):
        beat(here, broker)
    gone = beat(here, 1, want_shut_down=True)
    assert gone.should_shut_down and gone.is_fenced
    stale = here.ask("broker_heartbeat", BrokerHeartbeatRequest(broker_id=1, broker_epoch=0), 1)
    assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH and stale.is_fenced


def alteration(here: Controlled, isr: list[int], version: int) -> AlterPartitionRequest:
    world, state = here.world, here.world.partition()
    partition = PartitionData(partition_index=0, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch)
    if version < 3:
        partition.new_isr = isr
    else:
        partition.new_isr_with_epochs = [
            BrokerState(broker_id=each, broker_epoch=world.broker(each).epoch) for each in isr
        ]
    topic = TopicData(topic_id=world.topic("invoice").topic_id, partitions=[partition])
    return AlterPartitionRequest(broker_id=0, broker_epoch=world.broker(0).epoch, topics=[topic])


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_changes_its_in_sync_replicas(here: Controlled, version: int) -> None:
    response = here.ask("alter_partition", alteration(here, [0], version), version)
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.isr, partition.partition_epoch, partition.leader_id) == (0, [0], 1, 0)
    (back,) = here.ask("alter_partition", alteration(here, [0, 1], version), version).topics[0].partitions
    assert back.isr == [0, 1] == list(here.world.partition().isr)


def test_a_leader_whose_life_is_over_hears_so_and_a_lost_controller_too(here: Controlled) -> None:
    late = alteration(here, [0], 3)
    late.broker_epoch -= 1
    assert here.ask("alter_partition", late, 3).error_code == ErrorCode.STALE_BROKER_EPOCH
    here.refuses = NOT_CONTROLLER
    (partition,) = here.ask("alter_partition", alteration(here, [0], 3), 3).topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_CONTROLLER


def test_producer_ids_are_told_when_they_are_committed(here: Controlled) -> None:
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=here.world.broker(1).epoch)
    assert isinstance(here.answer("allocate_producer_ids", request, 0), Later)
    response = here.ask("allocate_producer_ids", request, 0)
    assert (response.error_code, response.producer_id_start, response.producer_id_len) == (0, 1000, 1000)
    request.broker_epoch = 0
    assert here.ask("allocate_producer_ids", request, 0).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_leaders_are_elected(here: Controlled) -> None:
    here.world.die(1)
    here.world.beat(1)
    asked = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="invoice", partitions=[0, 1])])
    (topic,) = here.ask("elect_leaders", asked, 2).replica_election_results
    assert [(each.partition_id, each.error_code) for each in topic.partition_result] == [
        (0, ErrorCode.ELECTION_NOT_NEEDED),
        (1, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ]
    here.world.alter([0, 1], index=1)
    (everywhere,) = here.ask("elect_leaders", ElectLeadersRequest(topic_partitions=None), 2).replica_election_results
    assert [(each.partition_id, each.error_code) for each in everywhere.partition_result] == [(1, ErrorCode.NONE)]
    assert here.world.partition(index=1).leader == 1
    strange = ElectLeadersRequest(election_type=7, topic_partitions=[])
    assert here.ask("elect_leaders", strange, 2).error_code == ErrorCode.INVALID_REQUEST


def reassignment(replicas: list[int] | None) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    return AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="invoice", partitions=[partition])])


def test_a_partition_moves_is_listed_and_is_taken_back(here: Controlled) -> None:
    (topic,) = here.ask("alter_partition_reassignments", reassignment([2, 0]), 1).responses
    assert topic.name == "invoice" and topic.partitions[0].error_code == ErrorCode.NONE
    for asked in (None, [ListPartitionReassignmentsTopics(name="invoice", partition_indexes=[0, 1, 9])]):
        request = ListPartitionReassignmentsRequest(topics=asked)
        (moving,) = here.ask("list_partition_reassignments", request, 0).topics
        (partition,) = moving.partitions
        told = partition.replicas, partition.adding_replicas, partition.removing_replicas
        assert told == ([2, 0, 1], [2], [1])
    here.ask("alter_partition_reassignments", reassignment(None), 1)
    assert not here.ask("list_partition_reassignments", ListPartitionReassignmentsRequest(), 0).topics
    (again,) = here.ask("alter_partition_reassignments", reassignment(None), 1).responses
    assert again.partitions[0].error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS and again.partitions[0].error_message


def test_a_broker_is_unregistered(here: Controlled) -> None:
    assert here.ask("unregister_broker", UnregisterBrokerRequest(broker_id=2), 0).error_code == ErrorCode.NONE
    again = here.ask("unregister_broker", UnregisterBrokerRequest(broker_id=2), 0)
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED and again.error_message


def test_features_are_lowered_and_raised(here: Controlled) -> None:
    name = "eligible.leader.replicas.version"
    down = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature=name, max_version_level=0, upgrade_type=2)])
    assert here.ask("update_features", down, 2).error_code == ErrorCode.NONE
    assert name not in here.world.controller.image.features
    up = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature=name, max_version_level=1)])
    assert here.ask("update_features", up, 1).results[0].error_code == ErrorCode.NONE
    old = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature=name, max_version_level=0)])
    assert here.ask("update_features", old, 0).error_code == ErrorCode.INVALID_UPDATE_VERSION
    old.feature_updates[0].allow_downgrade = True
    assert here.ask("update_features", old, 0).error_code == ErrorCode.NONE


def test_what_a_fenced_cluster_cannot_do_is_said_item_by_item(here: Controlled) -> None:
    here.world.die(0, 1)
    assert here.world.partition().leader == NO_BROKER
    asked = ElectLeadersRequest(
        election_type=1, topic_partitions=[TopicPartitions(topic="invoice", partitions=[0])], timeout_ms=0
    )
    (topic,) = here.ask("elect_leaders", asked, 2).replica_election_results
    assert topic.partition_result[0].error_code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
