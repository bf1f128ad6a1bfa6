"""Leaders ask for other in-sync replicas, and get them if what they saw is still so."""

from dataclasses import replace

import pytest

from klamm.controller.wishes import PartitionAlteration, Reassignment
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from tests.controller.world import World

INVOICE = TopicPartition("invoice", 0)


@pytest.fixture
def world() -> World:
    world = World(brokers=4)
    world.create("invoice", assignments=[(0, [0, 1, 2])])
    return world


def refusal(world: World, wish: PartitionAlteration, by: int = 0) -> ErrorCode:
    decision = world.controller.alter_partition(by, world.broker(by).epoch, [wish])
    assert decision.response[0].message
    return decision.response[0].error


def test_s14_a_follower_leaves_and_comes_back_each_time_in_a_new_partition_epoch(world: World) -> None:
    left = world.alter([0, 1])
    assert (left.error, left.isr, left.partition_epoch, left.leader_epoch) == (ErrorCode.NONE, (0, 1), 1, 0)
    back = world.alter([0, 1, 2])
    assert (back.isr, back.partition_epoch, back.leader, back.recovering) == ((0, 1, 2), 2, 0, False)


def test_asking_for_what_is_already_so_is_granted_without_a_record(world: World) -> None:
    before = world.next_offset
    assert world.alter([0, 1, 2]).partition_epoch == 0
    assert world.next_offset == before


def test_what_a_leader_saw_must_be_how_it_is(world: World) -> None:
    world.alter([0, 1])
    world.die(3)
    now = world.alteration([0, 1, 2])
    topic_id = now.topic_id
    assert refusal(world, replace(now, partition_epoch=0)) == ErrorCode.INVALID_UPDATE_VERSION
    assert refusal(world, replace(now, partition_epoch=9)) == ErrorCode.NOT_CONTROLLER
    assert refusal(world, replace(now, leader_epoch=9)) == ErrorCode.NOT_CONTROLLER
    assert refusal(world, now, by=1) == ErrorCode.INVALID_REQUEST
    assert refusal(world, replace(now, topic_id=bytes(16))) == ErrorCode.UNKNOWN_TOPIC_ID
    assert refusal(world, replace(now, index=1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(world, replace(now, index=-1)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(world, replace(now, isr=[(1, -1)])) == ErrorCode.INVALID_REQUEST
    assert refusal(world, replace(now, isr=[(0, -1), (0, -1)])) == ErrorCode.INVALID_REQUEST
    assert refusal(world, replace(now, isr=[(0, -1), (3, -1)])) == ErrorCode.INVALID_REQUEST
    assert refusal(world, replace(now, recovering=True)) == ErrorCode.INVALID_REQUEST
    assert world.topic("invoice").topic_id == topic_id and world.partition().isr == (0, 1)


def test_a_zombie_leader_is_refused_by_its_epoch(world: World) -> None:
    seen = world.alteration([0])
    epoch = world.broker(0).epoch
    world.die(0)
    assert world.partition().leader == 1
    (result,) = world.controller.alter_partition(0, epoch, [seen]).response
    assert result.error == ErrorCode.FENCED_LEADER_EPOCH


def test_only_who_is_active_comes_in_and_only_in_the_life_that_caught_up(world: World) -> None:
    world.alter([0, 1])
    before = world.alteration([0, 1, 2])
    world.restart(2, life=2)
    assert refusal(world, world.alteration([0, 1, 2])) == ErrorCode.INELIGIBLE_REPLICA
    world.beat(2)
    assert refusal(world, before) == ErrorCode.INELIGIBLE_REPLICA
    unknown = replace(before, isr=[(broker, -1) for broker, _ in before.isr])
    assert not world.controller.alter_partition(0, world.broker(0).epoch, [unknown]).response[0].error
    assert world.alter([0, 1, 2]).error == ErrorCode.NONE


def test_a_leader_that_is_shutting_down_takes_nobody_in() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [0, 1])])
    seen = world.alteration([0, 1])
    world.beat(0, want_shut_down=True)
    assert world.partition().leader == 1
    current = replace(seen, leader_epoch=world.partition().leader_epoch, partition_epoch=1)
    assert refusal(world, replace(current, isr=[(1, -1), (0, -1)]), by=1) == ErrorCode.INELIGIBLE_REPLICA


def test_a_leader_in_recovery_says_when_it_is_done_before_others_come_in(world: World) -> None:
    world.alter([0])
    world.die(0)
    world.restart(0, life=2, clean=False)
    world.beat(0)
    assert world.partition().recovering and world.partition().leader == 0
    both = world.alteration([0, 1])
    assert refusal(world, replace(both, recovering=True)) == ErrorCode.INVALID_REQUEST
    recovered = world.alter([0])
    assert not recovered.recovering and not world.partition().recovering
    assert world.alter([0, 1]).isr == (0, 1)


def test_the_last_who_catches_up_completes_a_reassignment(world: World) -> None:
    world.run(world.controller.reassign([Reassignment(INVOICE, [0, 3])]))
    result = world.alter([0, 1, 2, 3])
    assert (result.error, result.isr, result.leader_epoch) == (ErrorCode.NONE, (0, 3), 1)
    assert (world.partition().replicas, world.partition().adding, world.partition().removing) == ((0, 3), (), ())


def test_a_leader_that_is_reassigned_away_hears_of_the_new_one(world: World) -> None:
    world.run(world.controller.reassign([Reassignment(INVOICE, [3, 2])]))
    assert world.alter([0, 1, 2, 3]).error == ErrorCode.NEW_LEADER_ELECTED
    assert (world.partition().leader, world.partition().replicas) == (3, (3, 2))


def test_a_partition_named_twice_in_one_request_is_altered_once(world: World) -> None:
    wish = world.alteration([0, 1])
    results = world.run(world.controller.alter_partition(0, world.broker(0).epoch, [wish, wish]))
    assert [each.error for each in results] == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert world.partition().partition_epoch == 1
