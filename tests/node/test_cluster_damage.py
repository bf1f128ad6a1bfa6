"""A broker that finds less on its disk than it wrote has no right to lead, though its process was only killed.

Somebody else's bug (number 17 in the table of known bugs): a bit flips on one of five machines, the checksum failure is
taken for a shorter log, its machine is elected, and half of what was acknowledged is gone.
"""

from collections.abc import Callable

import pytest

from klamm.broker.facts import StrayDirectory
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.log.files import DiskFailed
from klamm.sim.disk import Inode
from tests.node.cluster_world import ClusterWorld, Member
from tests.node.test_cluster import TOPIC, create, produce, state

WITNESSES = (3, 4, 5)


@pytest.fixture
def world() -> ClusterWorld:
    """Three brokers; the quorum is elsewhere, and stays."""
    world = ClusterWorld(3, voters=WITNESSES, witnesses=WITNESSES, min_insync_replicas="2")
    world.run(1_000.0)
    return world


def file_of(member: Member, ending: str) -> Inode:
    return next(inode for name, inode in member.disk.names.items() if name.startswith(TOPIC) and name.endswith(ending))


def a_bit_flips(member: Member) -> None:
    content = bytearray(file_of(member, ".log").content)
    content[-1] ^= 1
    file_of(member, ".log").replace(content)


def the_end_is_missing(member: Member) -> None:
    content = file_of(member, ".log").content
    file_of(member, ".log").replace(content[: len(content) // 2 + 10])


def nobody_knows_whose_it_is(member: Member) -> None:
    file_of(member, "partition.metadata").replace(bytearray(b"?"))


def it_seems_to_be_anothers(member: Member) -> None:
    content = file_of(member, "partition.metadata").content
    content[-3] = ord("b") if content[-3] == ord("a") else ord("a")
    file_of(member, "partition.metadata").replace(content)


DAMAGES = (a_bit_flips, the_end_is_missing, nobody_knows_whose_it_is, it_seems_to_be_anothers)


def all_are_gone(world: ClusterWorld, partitions: int = 1) -> None:
    """Written by all, committed, and then no broker runs. The two that went last may lead, whichever comes back."""
    create(world, partitions=partitions)
    for number in range(10):
        assert produce(world, state(world).leader, b"%d" % number).error_code == 0
    for number in (1, 2, 0):
        world[number].kill()
    world.run_until(lambda: state(world, 3).leader == -1, 10_000.0)
    assert sorted((*state(world, 3).isr, *state(world, 3).elr)) == [0, 2]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_does_not_win_an_election(world: ClusterWorld, damage: Callable[[Member], None]) -> None:
    all_are_gone(world)
    damage(world[0])
    world[0].start()
    world.run(5_000.0)
    assert world[0].is_serving
    assert state(world, 3).leader == -1, "it has lost what was committed, and knows"
    world[2].start()
    world.run_until(lambda: state(world, 3).leader == 2, 5_000.0)
    world.run_until(lambda: sorted(state(world, 3).isr) == [0, 2], 5_000.0)
    replica = world[0].broker.partitions.get(TOPIC, 0)
    assert replica is not None and replica.log.end_offset == 10, "it has been given what it lost"


@pytest.mark.parametrize("damage", DAMAGES)
def test_nor_if_it_is_killed_before_it_could_say_so(world: ClusterWorld, damage: Callable[[Member], None]) -> None:
    """What was damaged is cut off by then, and the next life finds a log in order."""
    all_are_gone(world)
    damage(world[0])
    world[0].start()
    world.run_until(lambda: world[0].broker.is_open, 5_000.0)
    world[0].kill()
    world[0].start()
    world.run(10_000.0)
    assert world[0].is_serving
    assert state(world, 3).leader == -1


@pytest.mark.parametrize("damage", DAMAGES)
def test_nor_if_it_is_stopped_before_it_could_say_so(world: ClusterWorld, damage: Callable[[Member], None]) -> None:
    """It closed its logs in good order; but what was damaged is missing in them (sim 1002753)."""
    all_are_gone(world)
    damage(world[0])
    world[0].start()
    world.run_until(lambda: world[0].broker.is_open, 5_000.0)
    world[3].kill()
    world[0].begin_to_stop()
    world.run_until(lambda: world[0].has_stopped, 60_000.0)
    world[3].start()
    world[0].start()
    world.run_until(lambda: world[0].is_serving, 20_000.0)
    world.run(5_000.0)
    assert state(world, 3).leader == -1


def test_nor_does_one_of_which_nobody_can_read_whose_it_is(world: ClusterWorld) -> None:
    all_are_gone(world)
    name = f"{TOPIC}-0/partition.metadata"
    world[0].disk.failure = lambda call, path: DiskFailed(f"{path}: input/output error", 5) if path == name else None
    world[0].start()
    world.run(5_000.0)
    assert world[0].is_serving
    assert state(world, 3).leader == -1
    world[2].start()
    world.run_until(lambda: state(world, 3).leader == 2, 5_000.0)


def test_who_was_given_what_it_lost_may_lead_after_the_next_kill(world: ClusterWorld) -> None:
    """After a power loss a torn end is the rule. It must not cost the trust in what is written from then on."""
    all_are_gone(world)
    world[0].boots += 1
    the_end_is_missing(world[0])
    for number in (2, 0, 1):
        world[number].start()
    world.run_until(lambda: len(state(world, 3).isr) == 3, 10_000.0)
    world.run(1_000.0)
    for number in (1, 2, 0):
        world[number].kill()
    world.run_until(lambda: state(world, 3).leader == -1, 10_000.0)
    world[0].start()
    world.run_until(lambda: state(world, 3).leader == 0, 5_000.0)
    assert not state(world, 3).recovering, "it was entitled"


@pytest.mark.parametrize("is_there", [True, False])
def test_an_earlier_topic_of_the_same_name_is_no_damage(world: ClusterWorld, is_there: bool) -> None:
    """It was deleted, and another was created under its name, while this broker was away. Its directory may be gone
    already, and a checkpoint still tells of it: in the simulator a broker was distrusted for that."""
    all_are_gone(world)
    disk = world[0].disk
    disk.write_whole(checkpoint.HIGH_WATERMARKS, checkpoint.offsets_text({TopicPartition(TOPIC, 0): 10}))
    name = checkpoint.partition_metadata_text(b"another topic's!")
    file_of(world[0], "partition.metadata").replace(bytearray(name))
    if not is_there:
        disk.lose(f"{TOPIC}-0")
    world[0].start()
    world.run_until(lambda: world[0].is_serving, 5_000.0)
    assert not world[0].broker.life.is_doubted


def test_a_directory_that_was_being_made_is_no_damage(world: ClusterWorld) -> None:
    """The process was killed between its creation and its name. It would be distrusted for nothing."""
    all_are_gone(world, partitions=2)
    world[0].disk.make_directory(f"{TOPIC}-1")
    world[0].start()
    world.run_until(lambda: state(world, 3).leader == 0, 5_000.0)
    assert any(isinstance(fact, StrayDirectory) for fact in world[0].told)


def test_a_whole_log_does(world: ClusterWorld) -> None:
    all_are_gone(world)
    world[0].start()
    world.run_until(lambda: state(world, 3).leader == 0, 5_000.0)


def test_a_broker_that_is_killed_before_it_hears_of_its_registration_keeps_its_right(world: ClusterWorld) -> None:
    """The controller knows a life that the broker never heard of. (In the simulator the one that had lost its power was
    elected for it, as the last known leader.)"""
    all_are_gone(world)
    before = world[3].broker.image.brokers[0].epoch
    world[0].start()
    world.run_until(lambda: world[3].broker.image.brokers[0].epoch != before, 5_000.0)
    assert world[0].node.cluster.membership.epoch < 0, "it has not heard of it"
    world[0].kill()
    world.run(1_000.0)
    assert 0 in state(world, 3).elr
    world[0].start()
    world.run_until(lambda: state(world, 3).leader == 0, 5_000.0)
    assert not state(world, 3).recovering, "it was entitled"
