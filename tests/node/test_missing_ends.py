"""Logs that end too early between two batches, where nothing is damaged: the node notices, and deletes nothing.

A metadata log that is shorter than it was, an older segment of a partition that lost its end; and what a repair makes
of them.
"""

import pytest

from klamm.broker.facts import DirectoryKept, RecordsMissingWithin, SegmentDamaged
from klamm.log import checkpoint
from klamm.log.recovery import LogDamaged
from klamm.quorum.facts import SnapshotUnreadable
from klamm.quorum.journal import UnreadableMetadata
from klamm.records.batch import batches
from tests.node.requests import NAMED, batch_of, create, produce, read_all, send
from tests.node.test_kept import (
    CHECKPOINTED_MS,
    COUNT,
    ENDS,
    LATER_MS,
    METADATA_LOG,
    batch_starts,
    check_kept,
    end,
    replace,
    value,
    values_on_disk,
    written,
)
from tests.node.test_repairs import harmful, looked_at, repaired
from tests.node.world import World

# The metadata.


def lose_the_end_of_the_metadata(world: World, batches_left: int) -> None:
    """Cut between two batches, which shows in nothing."""
    replace(world, METADATA_LOG, bytes(world.disk.names[METADATA_LOG].content[: batch_starts(world)[batches_left]]))


@pytest.mark.parametrize("damage", ["nothing", "checkpoint gone", "checkpoint damaged"])
@pytest.mark.parametrize("how", ENDS)
def test_metadata_whose_end_may_be_missing_deletes_nothing(how: str, damage: str) -> None:
    """What had not been checkpointed yet, or the checkpoint with it: the directories were removed with one warning."""
    world = written(old=damage != "nothing")
    end(world, how)
    lose_the_end_of_the_metadata(world, 2)
    path = checkpoint.RECOVERY_POINTS
    if damage == "checkpoint gone" or (damage == "nothing" and how == "stopped"):
        world.disk.remove(path)
    elif damage == "checkpoint damaged":
        replace(world, path, b"?")
    world.start_again()
    world.advance(LATER_MS)
    check_kept(world)
    assert {fact.directory for fact in world.told_of(DirectoryKept)} == {"orders-0", "others-0"}


def test_metadata_whose_last_segment_is_empty_deletes_nothing() -> None:
    """All that had been checkpointed is there; a topic of the last minute is not."""
    world = with_snapshots()
    send(world.connect(), "another", value(0))
    last = max(name for name in world.disk.names if name.startswith("__cluster_metadata-0/") and name.endswith(".log"))
    replace(world, last, b"")
    world.start_again()
    world.advance(LATER_MS)
    assert value(0) in values_on_disk(world, "another")
    assert [fact.directory for fact in world.told_of(DirectoryKept)] == ["another-0"]


def with_snapshots() -> World:
    world = World(metadata_log_max_record_bytes_between_snapshots="100")
    client = world.connect()
    for topic in ("orders", "others"):
        create(client, topic)
        for number in range(COUNT):
            send(client, topic, value(number))
        world.advance(CHECKPOINTED_MS)
    create(client, "another")
    assert 0 < snapshot_ends(world)[-1] < world.broker.metadata_recovery_point()
    return world


def snapshot_ends(world: World) -> list[int]:
    names = sorted(name for name in world.disk.names if name.endswith(".checkpoint"))
    return [int(name.split("/")[1].split("-")[0]) for name in names]


def test_metadata_that_ends_before_its_snapshot_does_is_told() -> None:
    """Without the checkpoint, and with a log that is shorter than its snapshot, what followed that is missing."""
    world = with_snapshots()
    lose_the_end_of_the_metadata(world, 1)
    world.disk.remove(checkpoint.RECOVERY_POINTS)
    for name in [name for name in world.disk.names if name.startswith("__cluster_metadata-0/0") and ".log" in name]:
        if name != METADATA_LOG:
            world.disk.remove(name)
    with pytest.raises(LogDamaged, match="had been flushed"):
        world.start_again()


def test_metadata_that_ends_before_its_snapshot_does_is_repaired() -> None:
    world = with_snapshots()
    ends = snapshot_ends(world)
    world.disk.remove(checkpoint.RECOVERY_POINTS)
    for name in [name for name in world.disk.names if name.startswith("__cluster_metadata-0/0") and ".log" in name]:
        if name != METADATA_LOG:
            world.disk.remove(name)
    lose_the_end_of_the_metadata(world, 1)
    repaired(world)
    assert not harmful(looked_at(world))
    for _ in range(2):
        world.start_again()
        world.advance(LATER_MS)
        assert read_all(world.connect(), "orders") == [value(number) for number in range(COUNT)]
    assert snapshot_ends(world)[-1] >= ends[-1]


def test_a_repair_begins_a_batch_where_a_snapshot_ends() -> None:
    """One batch without records took the place of all that was missing, before and behind the snapshot's end: the node
    fell over it at every start."""
    world = with_snapshots()
    starts = batch_starts(world)
    content = bytearray(world.disk.names[METADATA_LOG].content)
    content[30 : starts[-1] + 70] = bytes(starts[-1] + 40)
    replace(world, METADATA_LOG, bytes(content))
    latest = max(name for name in world.disk.names if name.endswith(".checkpoint"))
    replace(world, latest, b"?")
    repaired(world, is_alone=True)
    assert not harmful(looked_at(world))
    world.start_again()
    world.advance(LATER_MS)
    assert world.told_of(SnapshotUnreadable)
    check_kept(world)


def test_a_gap_in_the_metadata_is_told() -> None:
    """A segment that was flushed long ago lost its end: nothing in it is damaged, and the next one goes on."""
    world = with_snapshots()
    world.advance(CHECKPOINTED_MS)
    assert sum(name.startswith("__cluster_metadata-0/") and name.endswith(".log") for name in world.disk.names) > 1
    lose_the_end_of_the_metadata(world, 2)
    for name in [name for name in world.disk.names if name.endswith(".checkpoint")]:
        replace(world, name, b"?")
    with pytest.raises(UnreadableMetadata, match="lacks the records"):
        world.start_again()


# Partitions.


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("left", ["nothing", "half", "all but one"])
def test_a_segment_that_lost_its_end_is_told(how: str, left: str) -> None:
    """Between two batches nothing is damaged, and readers go on with the next segment."""
    world = written(old=True)
    end(world, how)
    path = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))[2]
    content = bytes(world.disk.names[path].content)
    found = list(batches(memoryview(content)))
    kept = {"nothing": 0, "half": len(found) // 2, "all but one": len(found) - 1}[left]
    replace(world, path, content[: found[kept][0]])
    world.start_again()
    world.advance(LATER_MS)
    [told] = world.told_of(RecordsMissingWithin)
    assert (told.partition, told.offset, told.next_offset) == (
        "orders-0",
        found[kept][1].base_offset,
        found[-1][1].next_offset,
    )
    assert world.broker.partitions.missing_records == told.next_offset - told.offset
    assert len(read_all(world.connect(), "orders")) == COUNT - world.broker.partitions.missing_records


def test_a_segment_with_something_behind_its_end_is_told() -> None:
    world = written(old=True)
    path = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))[2]
    replace(world, path, bytes(world.disk.names[path].content) + b"garbage")
    world.start_again()
    world.advance(LATER_MS)
    assert [fact.partition for fact in world.told_of(SegmentDamaged)] == ["orders-0"]


def test_segments_in_order_are_no_news() -> None:
    """Compacted ones, too: their last batches stay."""
    world = World()
    client = world.connect()
    create(client, "keys", internal_segment_bytes="1000", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for number in range(COUNT):
        client.ask(produce("keys", batch=batch_of(value(number), keys=[b"key %d" % (number % 3)])), NAMED)
    world.advance(CHECKPOINTED_MS)
    assert len(read_all(client, "keys")) < COUNT
    world.kill()
    world.advance(LATER_MS)
    assert not world.told_of(RecordsMissingWithin) and not world.told_of(SegmentDamaged)


def segments_of(world: World, topic: str) -> list[str]:
    return sorted(name for name in world.disk.names if name.startswith(f"{topic}-0/") and name.endswith(".log"))


@pytest.mark.parametrize("size", [1, 12, 60])
def test_a_segment_shorter_than_a_header_is_no_riddle(size: int) -> None:
    """Its index points at the first byte: the node fell over it at every start."""
    world = written(old=True)
    path = segments_of(world, "orders")[2]
    replace(world, path, bytes(world.disk.names[path].content[:size]))
    world.start_again()
    world.advance(LATER_MS)
    assert [fact for fact in world.told if fact.level == "error" and "orders-0" in str(fact)]
    assert len(read_all(world.connect(), "others")) == COUNT


def test_the_damaged_end_of_a_compacted_segment_is_repaired() -> None:
    """The next segment begins where this one ended, so what took the place of the damage has to reach that far."""
    world = World()
    client = world.connect()
    create(client, "keys", internal_segment_bytes="1000", cleanup_policy="compact")
    for number in range(COUNT):
        client.ask(produce("keys", batch=batch_of(value(number), keys=[b"key %d" % number])), NAMED)
    path = segments_of(world, "keys")[0]
    content = bytearray(world.disk.names[path].content)
    content[-3] ^= 1
    replace(world, path, bytes(content))
    lost = [batch for _, batch in batches(memoryview(bytes(content)))][-1].base_offset
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()
    found = [value(number) for number in range(COUNT)]
    assert read_all(world.connect(), "keys") == found[:lost] + found[lost + 1 :]


def test_a_segment_of_somebody_else_is_repaired() -> None:
    """Its batches are whole, and their offsets do not follow: the check said that all is well, each start not."""
    world = written(old=False)
    [path] = segments_of(world, "orders")
    content = bytes(world.disk.names[path].content)
    middle = list(batches(memoryview(content)))[COUNT // 2]
    replace(world, path, content[middle[0] :])
    assert {each.offsets for each in looked_at(world).findings if each.is_harmful} == {(0, middle[1].base_offset)}
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()
    expected = [value(number) for number in range(middle[1].base_offset, COUNT)]
    assert read_all(world.connect(), "orders") == expected


def test_a_segment_that_reaches_into_the_next_one_costs_nothing_but_itself() -> None:
    """A later segment's bytes in its place. All that lay between was taken for damaged, and left out."""
    world = written(old=True)
    first, *between, last, _ = segments_of(world, "orders")
    replace(world, first, bytes(world.disk.names[last].content))
    world.start_again()
    world.advance(LATER_MS)
    assert [fact.partition for fact in world.told_of(SegmentDamaged)] == ["orders-0"]
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()
    begins = int(between[0][-24:-4])
    assert read_all(world.connect(), "orders") == [value(number) for number in range(begins, COUNT)]
