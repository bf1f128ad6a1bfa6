"""Partitions move: add, catch up, switch, remove; and back again."""

import pytest

from klamm.controller.wishes import MorePartitions, OngoingReassignment, Reassignment
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from tests.controller.world import World

INVOICE = TopicPartition("invoice", 0)


@pytest.fixture
def world() -> World:
    world = World(brokers=6)
    world.create("invoice", assignments=[(0, [0, 1, 2]), (1, [1, 2, 3])])
    return world


def move(world: World, replicas: list[int] | None, **options: bool) -> ErrorCode:
    (result,) = world.run(world.controller.reassign([Reassignment(INVOICE, replicas)], **options))
    return result.error


def members(world: World) -> tuple[tuple[int, ...], ...]:
    state = world.partition()
    return state.replicas, state.isr, state.adding, state.removing


def test_first_the_new_replicas_are_added(world: World) -> None:
    assert move(world, [3, 4, 0]) == ErrorCode.NONE
    assert members(world) == ((3, 4, 0, 1, 2), (0, 1, 2), (3, 4), (1, 2))
    assert (world.partition().leader, world.partition().leader_epoch) == (0, 0)
    assert world.partition().directories == tuple(bytes([broker + 1]) * 16 for broker in (3, 4, 0, 1, 2))
    assert world.controller.list_reassignments(None) == [
        OngoingReassignment(INVOICE, (3, 4, 0, 1, 2), adding=(3, 4), removing=(1, 2))
    ]


def test_when_all_that_shall_be_there_are_in_sync_the_others_are_removed(world: World) -> None:
    move(world, [3, 4, 0])
    world.alter([0, 1, 2, 3])
    assert members(world) == ((3, 4, 0, 1, 2), (0, 1, 2, 3), (3, 4), (1, 2))
    world.alter([0, 1, 2, 3, 4])
    assert members(world) == ((3, 4, 0), (0, 3, 4), (), ())
    assert world.controller.list_reassignments(None) == []


def test_an_order_is_changed_at_once(world: World) -> None:
    assert move(world, [2, 1, 0]) == ErrorCode.NONE
    assert members(world) == ((2, 1, 0), (0, 1, 2), (), ())
    assert world.partition().leader == 0, "until the preferred leader returns"


def test_replicas_are_removed_at_once_if_the_others_are_in_sync(world: World) -> None:
    move(world, [1, 2])
    assert members(world) == ((1, 2), (1, 2), (), ())
    assert (world.partition().leader, world.partition().leader_epoch) == (1, 1)


def test_replicas_are_not_removed_before_the_others_have_caught_up(world: World) -> None:
    world.alter([0])
    move(world, [1, 2])
    assert members(world) == ((1, 2, 0), (0,), (), (0,))
    world.alter([0, 1, 2])
    assert members(world) == ((1, 2), (1, 2), (), ())


def test_taking_it_back_leads_home(world: World) -> None:
    move(world, [3, 4, 0])
    world.alter([0, 1, 2, 3])
    assert move(world, None) == ErrorCode.NONE
    assert members(world) == ((0, 1, 2), (0, 1, 2), (), ())
    assert move(world, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_wish_begins_from_where_the_partition_was_at_home(world: World) -> None:
    move(world, [3, 4, 0])
    world.alter([0, 1, 2, 3])
    move(world, [5, 0, 1])
    assert members(world) == ((5, 0, 1, 2), (0, 1, 2), (5,), (2,))
    move(world, None)
    assert sorted(world.partition().replicas) == [0, 1, 2]


def test_a_wish_for_where_it_is_changes_nothing(world: World) -> None:
    before = world.next_offset
    assert move(world, [0, 1, 2]) == ErrorCode.NONE
    assert world.next_offset == before


def test_taking_it_back_is_refused_when_only_new_replicas_are_in_sync(world: World) -> None:
    move(world, [3])
    world.die(1, 2)
    world.run(world.controller.reassign([Reassignment(INVOICE, [3, 4])]))
    world.alter([0, 3])
    world.die(0)
    assert world.partition().leader == 3 and world.partition().isr == (3,)
    assert move(world, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    ("replicas", "error"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 0], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([0, 77], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_wishes_that_are_refused(world: World, replicas: list[int] | None, error: ErrorCode) -> None:
    assert move(world, replicas) == error


def test_partitions_that_are_not_there(world: World) -> None:
    for partition in (TopicPartition("absent", 0), TopicPartition("invoice", 9), TopicPartition("invoice", -1)):
        (result,) = world.controller.reassign([Reassignment(partition, [0])]).response
        assert result.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert world.controller.list_reassignments([partition]) == []


def test_the_replication_factor_may_be_kept_from_changing(world: World) -> None:
    keep = {"allow_replication_factor_change": False}
    assert move(world, [3, 4], **keep) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert move(world, [3, 4, 5], **keep) == ErrorCode.NONE
    assert move(world, [4, 5, 3], **keep) == ErrorCode.NONE, "compared with what it will have"


def test_one_is_moving_and_the_other_is_asked_about(world: World) -> None:
    move(world, [3, 4, 0])
    assert world.controller.list_reassignments([TopicPartition("invoice", 1)]) == []
    assert len(world.controller.list_reassignments([INVOICE, INVOICE])) == 1


def test_a_topic_that_is_moving_grows_by_partitions_of_its_own_replication_factor(world: World) -> None:
    move(world, [3, 4, 5])
    world.run(world.controller.create_partitions([MorePartitions("invoice", 3)]))
    assert len(world.partition(index=2).replicas) == 3


def test_a_broker_that_dies_while_it_is_added_keeps_the_move_waiting(world: World) -> None:
    move(world, [3, 1, 0])
    world.die(3)
    world.alter([0, 1])
    assert world.partition().adding == (3,)
    world.beat(3)
    world.alter([0, 1, 3])
    assert members(world) == ((3, 1, 0), (0, 1, 3), (), ())
