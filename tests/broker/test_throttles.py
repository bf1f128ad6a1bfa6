"""Replica throttles (KIP-73): who catches up takes only so much, who is in sync takes what it needs."""

from klamm.broker.throttles import Throttle
from klamm.ids import Now, TopicPartition
from klamm.metadata.image import EMPTY
from tests.broker.world import World

KIBIBYTE = b"x" * 1_024


def world_with_a_backlog() -> World:
    """Broker 2 was away while 60 KiB were written."""
    world = World(3)
    world.create_topic([0, 1, 2])
    world.settle_all()
    world[2].kill()
    world.controller.fence(2)
    for _ in range(60):
        world[0].produce(KIBIBYTE)
        world.settle_all()
    return world


def catch_up_ms(world: World) -> float:
    """How long it takes until the broker that was away has everything."""
    world.restart(2)
    began_ms = world.now.monotonic_ms
    while world[2].partition().log.end_offset < 60:
        world.settle_all()
        world.advance(100)
        assert world.now.monotonic_ms < began_ms + 100_000, "it never catches up"
    return world.now.monotonic_ms - began_ms


def limited(world: World, side: str) -> None:
    world.settings["replica.fetch.max.bytes"] = "4096"
    world.controller.configure(f"{side}.replication.throttled.replicas", "*")
    world.controller.configure_brokers(f"{side}.replication.throttled.rate", "10240")
    world.follow_all()


def test_without_a_limit_it_catches_up_at_once() -> None:
    assert catch_up_ms(world_with_a_backlog()) <= 200


def test_a_throttled_follower_catches_up_at_its_rate() -> None:
    world = world_with_a_backlog()
    limited(world, "follower")
    assert 4_000 <= catch_up_ms(world) <= 8_000


def test_a_throttled_leader_gives_at_its_rate() -> None:
    world = world_with_a_backlog()
    limited(world, "leader")
    assert 4_000 <= catch_up_ms(world) <= 12_000


def test_who_is_held_back_for_hours_goes_on_when_the_throttle_is_raised() -> None:
    """The first fetch alone takes its time at this rate; what it has cost does not count at another one."""
    world = world_with_a_backlog()
    limited(world, "follower")
    world.controller.configure_brokers("follower.replication.throttled.rate", "1")
    world.follow_all()
    world.restart(2)
    world.settle_all()
    world.advance(60_000)
    world.settle_all()
    assert 0 < world[2].partition().log.end_offset < 60, "it waits for its debt"
    world.controller.configure_brokers("follower.replication.throttled.rate", "1000000")
    world.follow_all()
    world.settle_all()
    assert world[2].partition().log.end_offset == 60


def test_who_is_in_sync_is_not_held_back() -> None:
    world = World(3, replica_fetch_max_bytes="4096")
    world.create_topic([0, 1, 2])
    for side in ("leader", "follower"):
        limited(world, side)
    world.settle_all()
    for _ in range(60):
        answers = world[0].produce(KIBIBYTE)
        world.settle_all()
        assert answers, "an acknowledgement waits for no throttle"


def test_pairs_name_replicas_of_one_broker() -> None:
    throttle = Throttle("leader.replication.throttled.replicas")
    world = World(1)
    world.controller.create_topic([[0]], leader_replication_throttled_replicas="0:0, 1:7,2:0")
    throttle.follow(world.controller.image, 1_000, 0)
    assert [throttle.holds(TopicPartition("orders", index)) for index in range(3)] == [True, False, True]
    throttle.follow(EMPTY, 1_000, 0)
    assert not throttle.is_limited


def test_a_second_of_debt_is_allowed_and_a_new_rate_forgives() -> None:
    throttle = Throttle("leader.replication.throttled.replicas")
    now = Now(0.0, 0)
    throttle.follow(EMPTY, 1_000, 0)
    throttle.count(1_000, now)
    assert throttle.free_ms(now) is None
    throttle.count(500, now)
    assert throttle.free_ms(now) == 500.0
    throttle.follow(EMPTY, 2_000, 0)
    assert throttle.free_ms(now) is None
