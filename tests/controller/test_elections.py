"""Elections that a person asks for, that time brings, and that follow from a setting."""

from klamm import slicing
from klamm.config import Change, Operation
from klamm.controller.wishes import ConfigChanges, ElectionType
from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, TopicPartition
from klamm.metadata.image import ConfigResource, ResourceType
from tests.controller.world import World

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def elect(world: World, kind: ElectionType, *indexes: int, topic: str = "invoice") -> list[ErrorCode]:
    partitions = [TopicPartition(topic, index) for index in indexes]
    return [each.error for each in world.run(world.controller.elect_leaders(kind, partitions))]


def altered(world: World, name: str, value: str, topic: str = "invoice") -> None:
    resource = ConfigResource(ResourceType.TOPIC if topic else ResourceType.BROKER, topic)
    wish = ConfigChanges(resource, [Change(name, Operation.SET, value)])
    (result,) = world.run(world.controller.incremental_alter_configs([wish]))
    assert not result.error, result.message


def test_a_lost_brokers_leaders_spread_over_all_who_can_take_them() -> None:
    """Kafka hands all of them to whoever is next in the list."""
    world = World(brokers=5)
    world.create("invoice", assignments=[(index, [0, 1, 2, 3, 4]) for index in range(8)])
    world.die(0)
    led = [sum(state.leader == broker for state in world.topic("invoice").partitions) for broker in range(5)]
    assert led == [0, 2, 2, 2, 2]


def test_a_whole_rack_lost_at_once_moves_every_leader_once() -> None:
    world = World(brokers=6, racks={broker: f"R{broker // 3}" for broker in range(6)})
    world.create("invoice", 30, 3)
    world.wait(2_900)
    for broker in (0, 1, 2):
        world.beat(broker)
    world.wait(100)
    world.tick()
    assert {broker.broker_id for broker in world.controller.image.brokers.values() if broker.fenced} == {3, 4, 5}
    states = world.topic("invoice").partitions
    assert all(state.leader in (0, 1, 2) and state.partition_epoch == 1 for state in states)


def test_s22_preferred_leadership_returns_by_itself_once_the_replica_is_in_sync() -> None:
    world = World(brokers=2, broker_session_timeout_ms="60000")
    world.create("invoice", assignments=[(0, [1, 0])])
    world.die(1)
    world.beat(1)
    world.wait(5_000)
    assert world.tick() == [], "it is back, but not in sync"
    world.alter([0, 1])
    world.wait(5_000)
    world.tick()
    assert (world.partition().leader, world.partition().leader_epoch) == (1, 2)
    assert world.controller.next_deadline_ms is not None
    assert world.controller.next_deadline_ms > world.now.monotonic_ms + 5_000, "nothing is left to look for"


def test_leaders_stay_where_they_are_if_that_is_wanted() -> None:
    world = World(brokers=2, auto_leader_rebalance_enable="false", broker_session_timeout_ms="60000")
    world.create("invoice", assignments=[(0, [1, 0])])
    world.die(1)
    world.beat(1)
    world.alter([0, 1])
    world.wait(20_000)
    assert world.tick() == [] and world.partition().leader == 0


def test_so_many_leaders_return_at_a_time() -> None:
    world = World(brokers=2, broker_session_timeout_ms="60000")
    count = slicing.ELEMENTS_A_SLICE + 1
    world.create("invoice", assignments=[(index, [1, 0]) for index in range(count)])
    world.die(1)
    world.beat(1)
    epoch = world.broker(0).epoch
    wishes = [world.alteration([0, 1], index=index) for index in range(count)]
    world.run(world.controller.alter_partition(0, epoch, wishes))
    world.wait(5_000)
    first = world.controller.tick(world.now).next_piece()
    assert first is not None and len(first.records) == slicing.ELEMENTS_A_SLICE
    world.wait(300_000)
    world.tick()
    assert all(state.leader == 1 for state in world.topic("invoice").partitions)


def test_a_preferred_election_that_is_asked_for() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0]), (1, [0, 1]), (2, [1, 2])])
    world.die(1)
    assert elect(world, PREFERRED, 0, 1, 9) == [
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    world.beat(1)
    world.alter([0, 1], index=0)
    assert elect(world, PREFERRED, 0, 0) == [ErrorCode.NONE]
    assert world.partition().leader == 1
    assert elect(world, PREFERRED, 0, topic="absent") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_electing_everywhere_speaks_only_of_those_that_needed_it() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0]), (1, [0, 1]), (2, [1, 0])])
    world.die(1)
    world.beat(1)
    world.alter([0, 1], index=0)
    results = world.run(world.controller.elect_leaders(PREFERRED, None))
    assert [(each.partition.partition, each.error) for each in results] == [
        (0, ErrorCode.NONE),
        (2, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ]


def test_an_unclean_election_only_where_nobody_leads_and_somebody_is_there() -> None:
    world = World(brokers=3)
    world.create("invoice", assignments=[(0, [1, 0]), (1, [0, 1]), (2, [1, 2])])
    world.alter([1], index=0)
    world.die(2, 1)
    assert [state.leader for state in world.topic("invoice").partitions] == [NO_BROKER, 0, NO_BROKER]
    assert elect(world, UNCLEAN, 0, 1, 2) == [
        ErrorCode.NONE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    ]
    assert (world.partition().leader, world.partition().isr, world.partition().recovering) == (0, (0,), True)


def test_a_leader_that_is_about_to_come_back_can_be_replaced_by_an_unclean_election() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0])])
    world.alter([1])
    world.restart(1, life=2)
    assert world.partition().leader == 1 and not world.broker(1).is_active
    assert elect(world, UNCLEAN, 0) == [ErrorCode.NONE]
    assert world.partition().leader == 0 and world.partition().recovering


def test_a_topic_that_allows_it_gets_an_unclean_leader_at_once() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0])], configs=[("unclean.leader.election.enable", "true")])
    world.alter([1])
    world.die(1)
    assert (world.partition().leader, world.partition().recovering) == (0, True)


def test_allowing_unclean_elections_helps_partitions_that_wait() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1, 0])])
    world.alter([1])
    world.die(1)
    assert world.partition().leader == NO_BROKER
    altered(world, "unclean.leader.election.enable", "true")
    assert (world.partition().leader, world.partition().recovering) == (0, True)


def test_demanding_fewer_in_sync_replicas_ends_the_right_of_eligible_ones() -> None:
    """The leader goes on committing alone, and they do not follow."""
    world = World(brokers=2, min_insync_replicas="2")
    world.create("invoice", assignments=[(0, [1, 0])])
    world.alter([1])
    assert world.partition().elr == (0,)
    altered(world, "min.insync.replicas", "1")
    assert world.partition().elr == ()
    world.die(1)
    assert (world.partition().leader, world.partition().elr) == (NO_BROKER, (1,))


def test_the_same_holds_for_a_setting_of_all_brokers() -> None:
    world = World(brokers=2, min_insync_replicas="2")
    world.create("invoice", assignments=[(0, [1, 0])])
    world.alter([1])
    altered(world, "min.insync.replicas", "1", topic="")
    assert world.partition().elr == ()
