"""Several nodes in memory when disks fail and lives end badly: a metadata log that breaks, a full disk, a number that
two machines have, a node that is stopped before its logs are open. Each story was once told by a reviewer, with another
end."""

import pytest

from klamm.broker.facts import LogsOpened
from klamm.controller.names import CLUSTER_METADATA
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.metadata.snapshot import records_of
from klamm.node.effects import Wake
from klamm.node.events import Woke
from klamm.node.facts import MetadataFailed
from tests.node.cluster_world import ClusterWorld, Member
from tests.node.requests import delete_records
from tests.node.test_cluster import TOPIC, create, produce, state
from tests.node.troubled import NEW, SESSION_MS, another, checkpointed, controller_of, creation, has_marker, outcome

# The metadata log fails.


@pytest.mark.parametrize("call", ["append", "flush", "read"])
def test_a_node_whose_metadata_log_fails_ends_and_what_it_led_is_led_by_others(world: ClusterWorld, call: str) -> None:
    """It would never hear again what the cluster decides. If it went on, it would acknowledge records as a leader that
    it no longer is, without end."""
    create(world, partitions=3)
    other = controller_of(world)
    index = next(index for index in range(3) if state(world, partition=index).leader != other.number)
    failing = world[state(world, partition=index).leader]
    failing.disk_fails(call, CLUSTER_METADATA)
    world.client(other.number).ask(creation())
    world.run_until(lambda: failing.has_stopped, 1_000.0)
    assert any(isinstance(fact, MetadataFailed) for fact in failing.told)
    assert not has_marker(failing), "it has to be recovered"
    world.run_until(lambda: state(world, other.number, index).leader not in (failing.number, -1), SESSION_MS)


def test_a_controller_whose_metadata_log_fails_makes_room_for_another(world: ClusterWorld) -> None:
    failing = controller_of(world)
    failing.disk_fails("flush", CLUSTER_METADATA)
    client = world.client(another(world, failing).number)
    number = client.post(creation())
    world.run_until(lambda: failing.has_stopped, 1_000.0)
    world.run_until(lambda: number in client.answers, SESSION_MS)
    assert outcome(client, number) in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS), "the others may have it already"
    assert all(NEW in member.broker.image.topics for member in world.alive)


def test_a_metadata_log_that_fails_in_the_middle_of_a_snapshot_keeps_nobody_awake() -> None:
    """The snapshot will never be finished. A node alone stays, to serve what it has, and sleeps in between."""
    world = ClusterWorld(1)
    member, now = world[0], world.now
    image, quorum = member.broker.image, member.broker.quorum
    quorum.take_snapshot(records_of(image), image.offset, image.epoch, now)
    member.node.cluster.metadata.fail("input/output error", now)
    for _ in range(3):
        effects = member.node.step(Woke(), now)
    assert all(effect.at_ms > now.monotonic_ms for effect in effects if isinstance(effect, Wake))


def test_a_full_disk_when_the_quorums_log_was_cut_is_told_and_not_a_crash(world: ClusterWorld) -> None:
    """The checkpoint says that more is safe than there is. Who cannot lower it must not go on, and must say why."""
    old = controller_of(world)
    world.isolate(old.number)
    world.client(old.number).post(creation())
    world.run(20.0)
    old.disk_fails("write_whole", checkpoint.RECOVERY_POINTS, full=True)
    world.run_until(lambda: any(each.broker.controller is not None for each in world.alive if each is not old))
    world.heal()
    world.run_until(lambda: old.has_stopped, SESSION_MS)
    assert any(isinstance(fact, MetadataFailed) and "no space" in str(fact) for fact in old.told)
    assert not has_marker(old)


def test_a_silent_broker_is_fenced_once_there_is_room_to_write_it_down(four: ClusterWorld) -> None:
    """The disk is full when its session ends. The controller stays the controller, so nobody else decides it."""
    controller = controller_of(four)
    controller.disk_fails("append", CLUSTER_METADATA, full=True)
    four[3].is_frozen = True
    four.run(SESSION_MS)
    assert not controller.broker.image.brokers[3].fenced
    controller.disk_recovers()
    four.run_until(lambda: controller.broker.image.brokers[3].fenced, SESSION_MS)
    assert four.controller() is controller
    assert not any(isinstance(fact, MetadataFailed) for fact in controller.told), "it did not fail, it is full"


# Two lives with one number.


def test_a_life_that_was_replaced_ends_when_it_hears_of_it(four: ClusterWorld) -> None:
    """A machine hangs and is replaced by another with its number and an empty disk; then it goes on."""
    old = four[3]
    old.is_frozen = True
    four.run(5_000.0)
    four.replace(3)
    four.run_until(lambda: four[3].is_serving, SESSION_MS)
    old.thaw()
    four.run_until(lambda: old.has_stopped, SESSION_MS)
    assert not has_marker(old), "its disk is nobody's any more"
    four.run(SESSION_MS)
    assert four[3].is_alive and not four[0].broker.image.brokers[3].fenced


def test_a_record_is_not_acknowledged_because_a_replaced_life_has_it(four: ClusterWorld) -> None:
    """It fetches in the name of the replica. What it holds is on a disk that is not the replica's."""
    create(four, factor=4)
    old = four[3]
    old.is_frozen = True
    four.run(5_000.0)
    new = four.replace(3)
    four.run_until(lambda: new.is_serving and 3 in state(four).isr, 2 * SESSION_MS)
    leader = next(number for number in (0, 1, 2) if number == state(four).leader)
    old.thaw()
    four.run(1_000.0)
    new.is_frozen = True
    answer = produce(four, leader, b"needs the new one")
    replica = new.broker.partitions.get(TOPIC, 0)
    assert replica is not None and replica.log.end_offset == 0
    assert answer.error_code != ErrorCode.NONE or 3 not in state(four, leader).isr


def test_when_all_processes_were_killed_those_that_return_go_on_without_one_that_hangs() -> None:
    """Their machines stayed up, so nothing that they wrote is missing. If they were taken for having lost something,
    the last one in sync would be the one that hangs, and nobody could lead without it."""
    world = ClusterWorld(min_insync_replicas="2")
    world.run(1_000.0)
    create(world)
    assert produce(world, state(world).leader, b"kept").error_code == 0
    for member in world.members.values():
        member.kill()
    for member in world.members.values():
        member.start()
    world[2].is_frozen = True
    world.run_until(lambda: world[0].is_serving and world[1].is_serving, SESSION_MS)
    world.run_until(lambda: state(world, 0).leader in (0, 1), SESSION_MS)


def test_a_broker_of_whom_the_image_does_not_know_this_life_waits_without_turning(world: ClusterWorld) -> None:
    """Nobody would believe what it says of its replicas. It goes on when the image has caught up with it."""
    create(world)
    leader = world[state(world).leader]
    follower = another(world, leader)
    known = world[0].broker.image.brokers[follower.number].epoch
    follower.broker.epoch = known - 1
    world.run(2_000.0)
    assert follower.broker.replication.next_deadline_ms is None or (
        follower.broker.replication.next_deadline_ms > world.now_ms
    )


# Stopped before the logs are open.


def test_after_a_crash_a_life_that_opened_nothing_does_not_end_cleanly(world: ClusterWorld) -> None:
    """Else the next one believes the torn tails that the crash left."""
    create(world)
    assert produce(world, state(world).leader, b"zero").error_code == ErrorCode.NONE
    crashed = another(world, controller_of(world))
    crashed.lose_power()
    world.run(2_000.0)
    crashed.start()
    world.run_until(lambda: crashed.node.cluster.membership.epoch >= 0)
    assert not crashed.broker.is_open
    crashed.begin_to_stop()
    world.run_until(lambda: crashed.has_stopped)
    assert not has_marker(crashed)
    crashed.start()
    world.run_until(lambda: crashed.is_serving)
    opened = [fact for fact in crashed.told if isinstance(fact, LogsOpened)][-1]
    assert not opened.clean


def stopped_cluster(world: ClusterWorld) -> Member:
    """Everybody has stopped; one of them led a partition of which the first three records were deleted."""
    create(world, factor=1)
    leader = world[state(world).leader]
    for number in range(5):
        assert produce(world, leader.number, b"%d" % number).error_code == ErrorCode.NONE
    (deleted,) = world.client(leader.number).ask(delete_records(TOPIC, 3)).topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (ErrorCode.NONE, 3)
    for member in world.members.values():
        member.begin_to_stop()
        world.run_until(lambda member=member: member.has_stopped)  # type: ignore[misc]
        assert has_marker(member)
    return leader


def started_in_vain(world: ClusterWorld, member: Member) -> None:
    """Without a majority nobody says which logs are its own."""
    member.start()
    world.run(2_000.0)
    assert not member.broker.is_open
    member.begin_to_stop()
    world.run_until(lambda: member.has_stopped)


def test_a_life_that_began_cleanly_and_opened_nothing_ends_as_it_began(world: ClusterWorld) -> None:
    """Else everything is recovered for nothing, and the broker gives up its place among the eligible leaders."""
    member = stopped_cluster(world)
    marker = member.disk.read_whole(checkpoint.CLEAN_SHUTDOWN)
    started_in_vain(world, member)
    assert has_marker(member)
    assert member.disk.read_whole(checkpoint.CLEAN_SHUTDOWN) == marker


def test_a_node_that_is_stopped_before_its_logs_are_open_keeps_the_checkpoints(world: ClusterWorld) -> None:
    member, partition = stopped_cluster(world), TopicPartition(TOPIC, 0)
    files = (checkpoint.RECOVERY_POINTS, checkpoint.LOG_START_OFFSETS, checkpoint.HIGH_WATERMARKS)
    before = {file: checkpointed(member, file).get(partition) for file in files}
    assert before[checkpoint.LOG_START_OFFSETS] == 3
    started_in_vain(world, member)
    assert {file: checkpointed(member, file).get(partition) for file in files} == before


def test_deleted_records_do_not_come_back_when_a_node_was_started_in_vain(world: ClusterWorld) -> None:
    member = stopped_cluster(world)
    started_in_vain(world, member)
    for each in world.members.values():
        each.start()
    world.run_until(lambda: all(each.is_serving for each in world.members.values()), 20_000.0)
    replica = member.broker.partitions.get(TOPIC, 0)
    assert replica is not None
    assert (replica.log.start_offset, replica.log.end_offset) == (3, 5)
