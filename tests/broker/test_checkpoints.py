"""What a broker notes of its replicas, and what it believes of it after a restart."""

from random import Random

from klamm.broker.housekeeping import Chore
from klamm.log import checkpoint
from klamm.log.files import DiskFailed
from tests.broker.world import Member, World

WATERMARKS = checkpoint.HIGH_WATERMARKS


def chore_of(member: Member, interval_ms: float) -> Chore:
    return next(chore for chore in member.broker.housekeeping.chores() if chore.interval_ms == interval_ms)


def checkpointed(member: Member, name: str) -> dict[str, int]:
    offsets = checkpoint.read_offsets(member.disk.read_whole(name))
    assert offsets is not None
    return {str(partition): offset for partition, offset in offsets.items()}


def world_with_records(**configs: str) -> World:
    world = World(3)
    world.create_topic([0, 1, 2], **configs)
    world.settle_all()
    for number in range(4):
        world[0].produce(b"%d" % number)
        world.settle_all()
    world.advance(600)
    world.settle_all()
    return world


def run(member: Member, interval_ms: float) -> None:
    for _ in chore_of(member, interval_ms).run(member.world.now):
        pass


def test_the_watermark_is_noted_every_few_seconds_and_believed_after_a_restart() -> None:
    world = world_with_records()
    run(world[1], 5_000)
    assert checkpointed(world[1], WATERMARKS) == {"orders-0": 4}
    world[1].kill()
    world.restart(1)
    assert world[1].partition().high_watermark == 4


def test_a_watermark_beyond_what_the_log_still_holds_is_not_believed() -> None:
    world = world_with_records()
    world[1].disk.write_whole(WATERMARKS, b"0\n1\norders 0 900\n")
    world[1].kill()
    world.restart(1)
    partition = world[1].partition()
    assert partition.high_watermark == partition.log.end_offset == 4


def test_a_log_that_is_cut_below_its_recovery_point_says_so_on_disk_before_it_grows() -> None:
    world = world_with_records()
    world[0].produce(b"lost", acks=1)
    world[0].broker._flush_all()
    run(world[0], 60_000)
    assert checkpointed(world[0], checkpoint.RECOVERY_POINTS)["orders-0"] == 5
    world.controller.fence(0)
    world.settle_all(deaf=frozenset({0}))
    world[0].follow_all()
    world.settle_all()
    world.advance(100)
    world.settle_all()
    assert world[0].partition().log.end_offset == 4
    assert checkpointed(world[0], checkpoint.RECOVERY_POINTS)["orders-0"] == 4
    world[0].lose_power(Random(1))
    assert checkpointed(world[0], checkpoint.RECOVERY_POINTS)["orders-0"] == 4


def test_if_that_cannot_be_said_the_log_takes_no_more() -> None:
    world = world_with_records()
    world[0].produce(b"lost", acks=1)
    world[0].broker._flush_all()
    run(world[0], 60_000)

    def failure(call: str, path: str) -> DiskFailed | None:
        return DiskFailed("read-only file system") if call == "write_whole" else None

    world[0].disk.failure = failure
    world.controller.fence(0)
    world.settle_all()
    world.advance(100)
    world.settle_all()
    assert world[0].partition().failure is not None


def test_a_partition_that_was_given_up_is_forgotten() -> None:
    world = world_with_records()
    run(world[2], 5_000)
    world.controller.reassign(0, [0, 1])
    world.settle_all()
    assert checkpointed(world[2], WATERMARKS) == {}


def test_what_was_lost_with_the_power_is_not_believed_of_what_comes_in_its_place() -> None:
    """A record that was never committed would be shown to readers, because another one at its offset once was."""
    world = world_with_records()
    run(world[2], 5_000)
    world[2].kill()
    world.controller.fence(2)
    for name, inode in world[2].disk.names.items():
        if name.startswith("orders-0/"):
            inode.content = bytearray()
            inode.flush()
    world.restart(2)
    assert world[2].partition().log.end_offset == 0
    assert checkpointed(world[2], WATERMARKS) == {"orders-0": 0}
