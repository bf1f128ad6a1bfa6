"""A broker that finds less on its disk than it wrote has no right to lead, though its process was only killed.

Somebody else's bug (number 17 in the table of known bugs): a bit flips on one of five machines, the checksum failure is
taken for a shorter log, its machine is elected, and half of what was acknowledged is gone.
"""

from collections.abc import Callable
from random import Random

import pytest

from klamm.broker.facts import DirectoryKept, RecordsMissing, StrayDirectory
from klamm.facts import Fact
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.log.files import DiskFailed
from klamm.log.salvage import LogDamaged
from klamm.node.repairs import Wish, inspect
from klamm.quorum.raft import UnreadableMetadata
from klamm.records.batch import batches
from klamm.sim.disk import Inode
from tests.node.cluster_world import ClusterWorld, Member
from tests.node.requests import deletion
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
def test_an_earlier_topic_of_the_same_name_is_no_damage(is_there: bool) -> None:
    """It was deleted, and another was created under its name, while this broker was away. Its directory may be gone
    already, and a checkpoint still tells of it: in the simulator a broker was distrusted for that."""
    world = three_in_sync()
    away = world[next(number for number in state(world).replicas if number != state(world).leader)]
    other = state(world).leader
    away.kill()
    world.client(other).ask(deletion(TOPIC))
    create(world, other)
    assert produce(world, state(world, other).leader, b"new").error_code == 0
    assert TopicPartition(TOPIC, 0) in (checkpoint.read_offsets(away.disk.read_whole(checkpoint.HIGH_WATERMARKS)) or {})
    if not is_there:
        away.disk.lose(f"{TOPIC}-0")
    away.start()
    world.run_until(lambda: away.is_serving, 20_000.0)
    assert not away.broker.life.is_doubted
    world.run_until(lambda: len(state(world).isr) == 3, 60_000.0)


@pytest.mark.parametrize("left", ["no directory", "no segment", "whole batches"])
def test_one_that_lost_what_was_committed_does_not_lead_where_nothing_is_damaged(left: str) -> None:
    """Only its checkpoint tells. It led with an empty log, and the two that had everything cut theirs."""
    world = three_in_sync()
    member = world[state(world).leader]
    # Everything is committed and nothing flushed, as in the minute before a checkpoint.
    member.disk.remove(checkpoint.RECOVERY_POINTS)
    for number in (0, 1, 2):
        world[number].kill()
    if left == "no directory":
        member.disk.lose(f"{TOPIC}-0")
    elif left == "no segment":
        del member.disk.names[f"{TOPIC}-0/00000000000000000000.log"]
    else:
        log = file_of(member, ".log")
        log.replace(log.content[: list(batches(memoryview(bytes(log.content))))[4][0]])
    for number in (member.number, *(number for number in (0, 1, 2) if number != member.number)):
        world[number].start()
    comes_back_in_sync(world, member)
    assert told_by(member, RecordsMissing)


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


# What is told, and what is kept.


def three_in_sync(partitions: int = 1) -> ClusterWorld:
    """Brokers that are voters too, with ten records on each, checkpointed."""
    world = ClusterWorld(3, min_insync_replicas="2")
    world.run(1_000.0)
    create(world, partitions=partitions)
    for number in range(10):
        assert produce(world, state(world).leader, b"%d" % number).error_code == 0
    world.run(120_000.0)
    assert sorted(state(world).isr) == [0, 1, 2]
    return world


def a_follower(world: ClusterWorld) -> Member:
    return world[next(number for number in state(world).replicas if number != state(world).leader)]


def comes_back(world: ClusterWorld, member: Member) -> None:
    member.start()
    comes_back_in_sync(world, member)


def comes_back_in_sync(world: ClusterWorld, member: Member) -> None:
    world.run_until(lambda: member.is_serving, 20_000.0)
    world.run_until(lambda: len(state(world).isr) == 3, 60_000.0)
    replica = member.broker.partitions.get(TOPIC, 0)
    assert replica is not None and replica.log.end_offset == 10


def told_by(member: Member, kind: type[Fact]) -> list[Fact]:
    return [fact for fact in member.told if isinstance(fact, kind)]


@pytest.mark.parametrize("gone", [f"{TOPIC}-0/", f"{TOPIC}-0/0", "some"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_node_that_lost_records_says_so_and_from_whom_it_gets_them(gone: str, clean: bool) -> None:
    """It used to come back in sync without a line."""
    world = three_in_sync()
    member = a_follower(world)
    if clean:
        member.begin_to_stop()
        world.run_until(lambda: member.has_stopped, 60_000.0)
    else:
        member.kill()
    if gone == "some":
        file_of(member, ".log").replace(file_of(member, ".log").content[:300])
    else:
        for name in [name for name in member.disk.names if name.startswith(gone)]:
            del member.disk.names[name]
    comes_back(world, member)
    [fact] = told_by(member, RecordsMissing)
    assert isinstance(fact, RecordsMissing)
    assert (fact.partition, fact.known_end) == (f"{TOPIC}-0", 10) and fact.level == "error"
    assert f"fetched again from broker {state(world).leader}" in str(fact)
    assert member.broker.partitions.missing_records == 10 - fact.end_offset > 0


@pytest.mark.parametrize("damage", [b"", b"?" * 200])
def test_a_directory_without_a_name_is_kept_and_fetched_again(damage: bytes) -> None:
    world = three_in_sync()
    member = a_follower(world)
    member.kill()
    # Nothing tells that it was flushed.
    member.disk.remove(checkpoint.RECOVERY_POINTS)
    content = bytes(file_of(member, ".log").content)
    file_of(member, "partition.metadata").replace(bytearray(damage))
    comes_back(world, member)
    [kept] = told_by(member, DirectoryKept)
    assert isinstance(kept, DirectoryKept)
    world.run(60_000.0)
    assert bytes(member.disk.names[f"{kept.kept_as}/00000000000000000000.log"].content) == content


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("number", [0, 3, 7])
def test_damaged_metadata_of_one_of_three_is_refused_repaired_and_fetched_again(number: int, clean: bool) -> None:
    """It comes back to the quorum under another directory id, as after a new disk, with all its topics' records."""
    world = three_in_sync()
    member = a_follower(world)
    if clean:
        member.begin_to_stop()
        world.run_until(lambda: member.has_stopped, 60_000.0)
    else:
        member.kill()
    log = member.disk.names["__cluster_metadata-0/00000000000000000000.log"]
    positions = [position for position, _ in batches(memoryview(bytes(log.content)))]
    content = bytearray(log.content)
    content[positions[number] + 70] ^= 1
    log.replace(content)
    with pytest.raises((LogDamaged, UnreadableMetadata)):
        member.start()
    member.kill()
    seen = inspect(member.disk, Random(1), Wish(is_alone=False if number == 0 else None))
    repairs = {each.repair.what: each.repair for each in seen.findings if each.is_harmful and each.repair}
    assert len(repairs) == 1, "once, whatever was found"
    next(iter(repairs.values())).do()
    comes_back(world, member)
    world.run_until(lambda: member.broker.quorum.is_voter, 60_000.0)
    assert not told_by(member, RecordsMissing) and not told_by(member, StrayDirectory)
    assert bytes(content) in [bytes(inode.content) for inode in member.disk.names.values()], "and the old one is kept"
