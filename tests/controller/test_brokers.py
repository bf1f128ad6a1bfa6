"""Brokers register, are fenced until they have caught up, fall silent, die, stop, and come back."""

from dataclasses import replace
from random import Random

import pytest

from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration, HeartbeatReply
from klamm.controller.controller import Controller
from klamm.controller.features import METADATA_VERSION, SUPPORTED
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER
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


def test_s6_a_broker_has_an_id_and_a_rack_and_an_epoch_which_is_the_offset_of_its_registration() -> None:
    world = World(brokers=0)
    offset = world.next_offset
    world.run(world.controller.register_broker(REGISTRATION, lambda: offset, world.now))
    broker = world.broker(0)
    assert (broker.rack, broker.epoch, broker.fenced) == ("R1", offset, True)
    assert broker.endpoints == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert broker.features == SUPPORTED and broker.directories == (bytes([1]) * 16,)


def test_it_is_fenced_until_its_image_holds_its_own_registration() -> None:
    world = World(brokers=0)
    epoch = world.register(0)
    assert world.beat(0, epoch - 1) == HeartbeatReply(is_caught_up=False, is_fenced=True)
    assert world.beat(0, epoch, want_fence=True) == HeartbeatReply(is_caught_up=True, is_fenced=True)
    assert not world.broker(0).is_active
    assert world.beat(0, epoch) == HeartbeatReply(is_caught_up=True, is_fenced=False)
    assert world.broker(0).is_active
    before = world.next_offset
    world.beat(0, epoch)
    assert world.next_offset == before, "a heartbeat that changes nothing writes nothing"


def test_who_was_given_up_is_counted_on_again_once_it_knows_that() -> None:
    """Else it would go on as the leader of what others lead by now, with everybody's blessing."""
    world = World()
    epoch = world.broker(0).epoch
    assert world.beat(0, epoch, want_fence=True).is_fenced
    fenced_at = world.next_offset - 1
    assert world.beat(0, fenced_at - 1) == HeartbeatReply(is_caught_up=False, is_fenced=True)
    assert world.beat(0, fenced_at) == HeartbeatReply(is_caught_up=True, is_fenced=False)


def test_what_an_earlier_life_says_is_not_heard() -> None:
    world = World()
    old = world.broker(0).epoch
    world.register(0, life=2)
    for ask in (
        lambda: world.run(world.controller.heartbeat(BrokerHeartbeat(0, old, 100), lambda: 100, world.now)),
        lambda: world.controller.allocate_producer_ids(0, old),
        lambda: world.run(world.controller.alter_partition(0, old, [])),
        lambda: world.run(world.controller.heartbeat(BrokerHeartbeat(5, 1, 100), lambda: 100, world.now)),
    ):
        with pytest.raises(KafkaError) as refused:
            ask()
        assert refused.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_the_same_life_may_amend_what_it_said_and_stays_what_it_was() -> None:
    world = World()
    world.create("invoice")
    epoch = world.broker(0).epoch
    again = replace(REGISTRATION, endpoints=[Endpoint("PLAINTEXT", "10.0.0.1", 9092)])
    assert (
        world.run(world.controller.register_broker(again, lambda: world.next_offset, world.now)).broker_epoch == epoch
    )
    assert world.broker(0).is_active and world.broker(0).endpoints[0].host == "10.0.0.1"
    assert world.partition().leader_epoch == 0


@pytest.mark.parametrize(
    ("registration", "error"),
    [
        (replace(REGISTRATION, cluster_id="another"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (replace(REGISTRATION, broker_id=-1), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, directories=[]), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, directories=[bytes([5]) * 16] * 2), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, directories=[bytes(16)]), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, broker_id=1), ErrorCode.INVALID_REGISTRATION),
        (replace(REGISTRATION, features={}), ErrorCode.UNSUPPORTED_VERSION),
        (replace(REGISTRATION, features={METADATA_VERSION: FeatureRange(1, 29)}), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_who_is_not_let_in(registration: BrokerRegistration, error: ErrorCode) -> None:
    world = World()
    with pytest.raises(KafkaError) as refused:
        world.run(world.controller.register_broker(registration, lambda: 10, world.now))
    assert refused.value.code == error


# Two processes, one id.


def test_a_second_process_with_the_same_id_is_refused_while_the_first_is_alive() -> None:
    world = World(brokers=2)
    other = world.registration(1, life=9, directory=77)
    with pytest.raises(KafkaError) as refused:
        world.run(world.controller.register_broker(other, lambda: world.next_offset, world.now))
    assert refused.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    world.wait(3_000)
    assert world.run(world.controller.register_broker(other, lambda: world.next_offset, world.now)).broker_epoch


def test_a_second_process_on_the_same_directory_is_let_in_at_once() -> None:
    """It holds the directory's lock, so the first one is gone."""
    world = World(brokers=2)
    epoch = world.broker(1).epoch
    world.restart(1, life=2, clean=False)
    assert world.broker(1).epoch > epoch and world.broker(1).fenced


# Sessions.


def test_a_silent_broker_is_fenced_after_its_session_and_no_sooner() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0])])
    world.wait(2_900)
    world.beat(0)
    assert world.tick() == []
    world.wait(100)
    world.tick()
    assert world.broker(1).fenced and not world.broker(0).fenced
    assert (world.partition().leader, world.partition().isr) == (0, (0,))


def test_a_fenced_broker_that_speaks_again_is_active_again() -> None:
    world = World(brokers=2)
    world.wait(3_000)
    world.beat(0)
    world.tick()
    assert world.beat(1) == HeartbeatReply(is_caught_up=True, is_fenced=False)
    assert world.broker(1).is_active


def test_a_new_controller_gives_everybody_a_whole_session() -> None:
    world = World(brokers=2)
    world.wait(2_999)
    world.run(world.controller.activate(world.now))
    world.wait(2_999)
    assert world.tick() == []
    world.wait(1)
    world.tick()
    assert world.broker(0).fenced and world.broker(1).fenced


def test_a_controller_that_slept_does_not_blame_the_others_for_it() -> None:
    world = World(brokers=2)
    world.wait(60_000)
    assert world.tick() == []
    world.beat(0)
    world.wait(1_000)
    world.tick()
    assert world.broker(1).fenced and not world.broker(0).fenced


def test_evidence_of_a_death_is_acted_on_at_once_and_once() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0, 2])])
    world.die(1)
    assert world.broker(1).fenced and world.partition().leader == 0
    assert world.controller.broker_is_gone(1, world.now).records == []
    assert world.controller.broker_is_gone(77, world.now).records == []


def test_evidence_right_after_a_new_life_began_is_about_the_old_one() -> None:
    world = World(brokers=2)
    world.restart(1, life=2, clean=False)
    world.beat(1)
    assert world.controller.broker_is_gone(1, world.now).records == []
    world.wait(500)
    assert world.controller.broker_is_gone(1, world.now).records


# Restarts.


def test_a_broker_alone_keeps_its_partitions_over_restarts_and_begins_new_leader_epochs_after_unclean_ones() -> None:
    """What it had not flushed may be gone, and other records may come to stand at the same offsets."""
    world = World()
    world.create("invoice", 2)
    epoch = world.broker(0).epoch
    second = world.register(0, life=2, previous=epoch)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [0, 0]
    world.register(0, life=3, previous=epoch)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [1, 1]
    world.register(0, life=4)
    assert [state.leader_epoch for state in world.topic("invoice").partitions] == [2, 2]
    assert world.broker(0).epoch > second
    world.beat(0)
    assert (world.partition().leader, world.partition().isr, world.partition().leader_epoch) == (0, (0,), 2)


def test_where_others_are_in_sync_a_broker_that_restarts_hands_over() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0, 2])])
    world.restart(1, life=2)
    assert (world.partition().leader, world.partition().isr) == (0, (0, 2))
    world.beat(1)
    assert world.partition().leader == 0, "it has to catch up first"


def test_an_unclean_restart_costs_the_right_to_lead() -> None:
    """I19: a replica that may have lost records is not elected while another is eligible."""
    world = World(brokers=2, min_insync_replicas="2")
    world.create("invoice", assignments=[(0, [0, 1])])
    world.die(1, 0)
    assert (world.partition().isr, world.partition().elr, world.partition().leader) == ((), (0, 1), NO_BROKER)
    world.restart(0, life=2, clean=False)
    world.beat(0)
    assert (world.partition().elr, world.partition().leader) == ((1,), NO_BROKER)
    world.beat(1)
    assert (world.partition().leader, world.partition().isr, world.partition().recovering) == (1, (1,), False)


def test_when_all_went_down_uncleanly_the_last_known_leader_returns() -> None:
    world = World(brokers=2, min_insync_replicas="2")
    world.create("invoice", assignments=[(0, [0, 1])])
    world.die(1, 0)
    assert world.partition().last_known_elr == (0,)
    world.restart(1, life=2, clean=False)
    world.beat(1)
    world.restart(0, life=2, clean=False)
    assert (world.partition().elr, world.partition().leader) == ((), NO_BROKER)
    world.beat(0)
    assert (world.partition().leader, world.partition().isr) == (0, (0,))
    assert world.partition().recovering and world.partition().last_known_elr == ()


def test_a_broker_whose_disk_was_replaced_does_not_lead_others_into_emptiness() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [0, 1])])
    world.alter([0])
    world.die(0)
    world.restart(0, life=2, clean=False, directory=99)
    world.beat(0)
    assert world.partition().leader == NO_BROKER, "broker 1 lags behind, but has something"
    alone = World(brokers=2)
    alone.create("invoice", assignments=[(0, [0])])
    alone.die(0)
    alone.restart(0, life=2, clean=False, directory=99)
    alone.beat(0)
    assert alone.partition().leader == 0, "nobody has anything that could be kept"
    assert alone.partition().directories == (bytes([99]) * 16,)


def test_when_a_replaced_disk_has_caught_up_the_partition_is_known_to_be_there() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [0, 1])])
    world.die(1)
    world.restart(1, life=2, clean=False, directory=99)
    world.beat(1)
    assert world.alter([0, 1]).isr == (0, 1)
    assert world.partition().directories == (bytes([1]) * 16, bytes([99]) * 16)
    world.die(0)
    assert world.partition().leader == 1


# Controlled shutdown.


def test_a_broker_that_wants_to_stop_goes_on_until_its_leaders_have_moved_and_everybody_knows() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0, 2]), (1, [2, 1, 0])])
    moved_at = world.next_offset
    assert world.beat(1, want_shut_down=True) == HeartbeatReply(is_caught_up=True, is_fenced=False)
    assert world.broker(1).in_controlled_shutdown and not world.broker(1).fenced
    assert [state.leader for state in world.topic("invoice").partitions] == [0, 2]
    assert [state.isr for state in world.topic("invoice").partitions] == [(0, 2), (2, 0)]
    seen = world.next_offset - 1
    world.beat(0, seen)
    world.beat(2, moved_at)
    assert not world.beat(1, want_shut_down=True).should_shut_down, "broker 2 still takes it for a leader"
    world.beat(2, seen)
    assert world.beat(1, want_shut_down=True) == HeartbeatReply(True, is_fenced=True, should_shut_down=True)
    assert world.broker(1).fenced
    assert world.beat(1, want_shut_down=True).should_shut_down, "it may ask again"


def test_a_broker_that_leads_nothing_may_stop_at_once() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [0, 1])])
    assert world.beat(1, want_shut_down=True) == HeartbeatReply(True, is_fenced=True, should_shut_down=True)
    assert world.partition().isr == (0,)


def test_a_broker_that_said_it_would_stop_is_not_counted_on_again_in_this_life() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0])])
    world.beat(1, want_shut_down=True)
    world.die(1)
    assert world.beat(1).is_fenced
    world.restart(1, life=2)
    assert not world.beat(1).is_fenced and world.broker(1).is_active


def test_a_new_controller_goes_on_with_a_shutdown_that_another_began() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0])])
    world.beat(1, want_shut_down=True)
    image = replace(world.controller.image, offset=world.next_offset - 1)
    world.controller = Controller(world.config, CLUSTER, Random(1), image, world.now)
    world.beat(0)
    assert not world.beat(1, want_shut_down=True).should_shut_down, "of broker 2 nothing is known yet"
    world.beat(2)
    assert world.beat(1, want_shut_down=True).should_shut_down


def test_while_one_broker_restarts_topics_can_be_created_on_all() -> None:
    world = World(brokers=3)
    world.beat(2, want_shut_down=True)
    state = world.create("invoice", 1, 3).partitions[0]
    assert sorted(state.replicas) == [0, 1, 2] and sorted(state.isr) == [0, 1] and state.leader in (0, 1)


# Unregistering.


def test_a_broker_is_unregistered_and_what_it_held_goes_on_without_it() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [2, 0])])
    world.run(world.controller.unregister_broker(2))
    assert 2 not in world.controller.image.brokers
    assert (world.partition().leader, world.partition().isr, world.partition().replicas) == (0, (0,), (2, 0))
    with pytest.raises(KafkaError) as refused:
        world.run(world.controller.unregister_broker(2))
    assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_the_only_one_that_holds_a_partition_is_unregistered_and_comes_back() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1])])
    world.run(world.controller.unregister_broker(1))
    assert (world.partition().leader, world.partition().elr) == (NO_BROKER, (1,))
    world.join(1)
    assert (world.partition().leader, world.partition().isr) == (1, (1,))


def test_producer_ids_come_in_blocks_of_a_thousand_and_never_twice() -> None:
    world = World()
    epoch = world.broker(0).epoch
    blocks = [world.run(world.controller.allocate_producer_ids(0, epoch)) for _ in range(3)]
    assert [(block.first, block.count) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert world.controller.image.next_producer_id == 3000
