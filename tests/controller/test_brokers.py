"""Brokers register, are fenced until they have caught up, and begin new leader epochs after a crash."""

from dataclasses import replace

import pytest

from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration, HeartbeatReply
from klamm.controller.features import LATEST_METADATA_VERSION, METADATA_VERSION, SUPPORTED
from klamm.errors import ErrorCode, KafkaError
from klamm.metadata.image import Endpoint, FeatureRange
from tests.controller.world import CLUSTER, World

REGISTRATION = BrokerRegistration(
    broker_id=0,
    incarnation_id=bytes([1]) * 16,
    cluster_id=CLUSTER,
    endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092)],
    directories=[bytes([1]) * 16],
    features=SUPPORTED,
    rack="R1",
)


def test_a_new_cluster_begins_with_its_metadata_version_and_no_other_feature() -> None:
    world = World(brokers=0)
    assert world.controller.image.features == {METADATA_VERSION: LATEST_METADATA_VERSION} == {"metadata.version": 30}
    assert not world.controller.activate().records


def test_s6_a_broker_has_an_id_and_a_rack_and_an_epoch_which_is_the_offset_of_its_registration() -> None:
    world = World(brokers=0)
    offset = world.next_offset
    world.run(world.controller.register_broker(REGISTRATION, offset))
    broker = world.controller.image.brokers[0]
    assert (broker.rack, broker.epoch, broker.fenced) == ("R1", offset, True)
    assert broker.endpoints == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert broker.features == SUPPORTED and broker.directories == (bytes([1]) * 16,)


def test_it_is_fenced_until_its_image_holds_its_own_registration() -> None:
    world = World(brokers=0)
    epoch = world.register(0)
    late = world.controller.heartbeat(BrokerHeartbeat(0, epoch, epoch - 1))
    assert (late.response, late.records) == (HeartbeatReply(is_caught_up=False, is_fenced=True), [])
    unwilling = world.controller.heartbeat(BrokerHeartbeat(0, epoch, epoch, want_fence=True))
    assert (unwilling.response.is_fenced, unwilling.records) == (True, [])
    reply = world.run(world.controller.heartbeat(BrokerHeartbeat(0, epoch, epoch)))
    assert reply == HeartbeatReply(is_caught_up=True, is_fenced=False)
    assert world.controller.image.brokers[0].is_active
    assert not world.controller.heartbeat(BrokerHeartbeat(0, epoch, epoch)).records


def test_what_an_earlier_life_says_is_not_heard() -> None:
    world = World()
    old = world.controller.image.brokers[0].epoch
    world.register(0, life=2)
    for ask in (
        lambda: world.controller.heartbeat(BrokerHeartbeat(0, old, 100)),
        lambda: world.controller.allocate_producer_ids(0, old),
        lambda: world.controller.heartbeat(BrokerHeartbeat(5, 1, 100)),
    ):
        with pytest.raises(KafkaError) as refused:
            ask()
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_after_a_crash_it_begins_new_leader_epochs_and_after_a_clean_shutdown_it_does_not() -> None:
    """What it had not flushed may be gone, and other records may come to stand at the same offsets."""
    world = World()
    world.create("invoice", 2)
    epoch = world.controller.image.brokers[0].epoch
    second = world.register(0, life=2, previous=epoch)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [0, 0]
    world.register(0, life=3, previous=epoch)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [1, 1]
    world.register(0, life=4)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [2, 2]
    assert world.controller.image.brokers[0].epoch > second


def test_the_same_life_may_amend_what_it_said_and_stays_what_it_was() -> None:
    world = World()
    world.create("invoice")
    epoch = world.controller.image.brokers[0].epoch
    again = replace(REGISTRATION, endpoints=[Endpoint("PLAINTEXT", "10.0.0.1", 9092)])
    assert world.run(world.controller.register_broker(again, world.next_offset)).broker_epoch == epoch
    broker = world.controller.image.brokers[0]
    assert broker.is_active and broker.endpoints[0].host == "10.0.0.1"
    assert world.topic("invoice").partitions[0].leader_epoch == 0


@pytest.mark.parametrize(
    ("registration", "error"),
    [
        (replace(REGISTRATION, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (replace(REGISTRATION, directories=[]), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, directories=[bytes([5]) * 16] * 2), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, broker_id=1), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, features={}), ErrorCode.UNSUPPORTED_VERSION),
        (replace(REGISTRATION, features={METADATA_VERSION: FeatureRange(1, 29)}), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_who_is_not_let_in(registration: BrokerRegistration, error: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refused:
        World().controller.register_broker(registration, 10)
    assert refused.value.code == error


def test_producer_ids_come_in_blocks_of_a_thousand_and_never_twice() -> None:
    world = World()
    epoch = world.controller.image.brokers[0].epoch
    blocks = [world.run(world.controller.allocate_producer_ids(0, epoch)) for _ in range(3)]
    assert [(block.first, block.count) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert world.controller.image.next_producer_id == 3000
