"""A process that was killed comes back with everything, and says so; unless its disk says otherwise.

What the machine kept for a killed process is there, so the broker keeps its right to lead (broker/life.py). But a disk
may lose the end of a log while nobody looks. Whoever finds that when it opens its logs has promised too much.
"""

import pytest

from klamm.broker.facts import LogsOpened
from klamm.log.recovery import TailCut
from klamm.node.facts import Registered, Serving
from tests.node.cluster_world import ClusterWorld, Member
from tests.node.test_cluster import TOPIC, create, produce, state


def a_cluster_whose_partition_has_two_in_sync() -> tuple[ClusterWorld, Member, Member]:
    """Node 4 and 3 vote, 2 is away, and 0 and 1 hold what is committed."""
    world = ClusterWorld(3, voters=[0, 1, 2, 3, 4], witnesses=[3, 4], min_insync_replicas="2")
    create(world)
    world[2].kill()
    world.run_until(lambda: len(state(world).isr) == 2)
    leader = world[state(world).leader]
    for text in (b"one", b"two", b"three"):
        assert produce(world, leader.number, text).error_code == 0
    world.run(1_000.0)
    return world, leader, world[1 - leader.number]


def cut_the_log_of(member: Member) -> None:
    (path,) = [path for path in member.disk.names if path.startswith(f"{TOPIC}-0/") and path.endswith(".log")]
    inode = member.disk.names[path]
    inode.replace(inode.content[:-20])


@pytest.mark.parametrize("is_damaged", [False, True])
def test_who_comes_back_with_less_than_it_had_is_not_elected(is_damaged: bool) -> None:
    world, leader, follower = a_cluster_whose_partition_has_two_in_sync()
    leader.kill()
    world.run_until(lambda: state(world, follower.number).leader == follower.number)
    assert state(world, follower.number).elr == (leader.number,), "fewer than two are in sync"
    if is_damaged:
        cut_the_log_of(leader)
    follower.kill()
    leader.told.clear()
    leader.start()
    world.run_until(lambda: any(isinstance(fact, Serving) for fact in leader.told), 20_000.0)
    world.run(5_000.0)
    kinds = [type(fact) for fact in leader.told if isinstance(fact, Registered | LogsOpened | TailCut | Serving)]
    if is_damaged:
        assert kinds == [Registered, TailCut, LogsOpened, Registered, Serving], "it takes back what it said"
        assert state(world, leader.number).leader == -1, "the other one has everything, and is waited for"
    else:
        assert kinds == [Registered, LogsOpened, Serving]
        assert state(world, leader.number).leader == leader.number
    follower.start()
    world.run_until(lambda: state(world, leader.number).leader >= 0)
    for member in (leader, follower):
        world.run_until(lambda: member.broker.is_open and end_of(member) == 3)  # noqa: B023


def end_of(member: Member) -> int:
    partition = member.broker.partitions.get(TOPIC, 0)
    assert partition is not None
    return partition.log.end_offset
