"""Retention, compaction, checkpoints and removals run as chores between requests, a slice at a time."""

from pathlib import Path
from random import Random

import pytest

from klamm.broker.facts import CompactionFailed, PartitionFailed, ProducersForgotten
from klamm.broker.housekeeping import largest_share
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed, DiskFull
from klamm.node.effects import Wake
from klamm.runtime.files import RealFiles
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.node.requests import (
    NAMED,
    acknowledged,
    batch_of,
    create,
    delete,
    delete_records,
    deletion,
    fetch,
    fetched,
    offsets,
    produce,
    read_all,
    send,
    values_in,
)
from tests.node.world import Client, World

MINUTE_MS = 60_000
CLEANER_PAUSE_MS = 15_000
SMALL_SEGMENTS = {"internal_segment_bytes": "1000", "index_interval_bytes": "100"}


def write_keys(client: Client, topic: str, values: dict[bytes, bytes | None]) -> None:
    for key, value in values.items():
        timestamp = client.world.now.wall_ms
        batch = batch_of(value, keys=[key], timestamp=timestamp)
        assert acknowledged(client.ask(produce(topic, batch=batch), NAMED)).error_code == ErrorCode.NONE


def compacted_topic(world: World, **configs: str) -> Client:
    client = world.connect()
    settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", **SMALL_SEGMENTS, **configs}
    create(client, "table", **settings)
    return client


def keys_and_values(client: Client, topic: str) -> dict[bytes, bytes]:
    """The table as a reader of the whole log has it."""
    found = {}
    for value in read_all(client, topic):
        key, _, content = value.partition(b"=")
        found[key] = content
    return found


# Retention.


def test_records_older_than_retention_go(tmp_path: Path, real_files: RealFiles) -> None:
    world = World(real_files)
    client = world.connect()
    create(client, "orders", retention_ms="600000", file_delete_delay_ms="0", **SMALL_SEGMENTS)
    for number in range(40):
        batch = batch_of(b"%d" % number + b"." * 100, timestamp=world.now.wall_ms)
        client.ask(produce("orders", batch=batch), NAMED)
        world.advance(MINUTE_MS)
    earliest, latest = offsets(client, "orders")
    assert latest == 40 and 20 <= earliest < 40
    assert [value.split(b".")[0] for value in read_all(client, "orders")] == [b"%d" % n for n in range(earliest, 40)]
    world.advance(6 * MINUTE_MS)
    assert len(list((tmp_path / "orders-0").glob("*.log"))) <= 4


def test_a_reader_that_was_overtaken_by_retention_is_told(real_files: RealFiles) -> None:
    world = World(real_files)
    client = world.connect()
    create(client, "orders", retention_bytes="2000", **SMALL_SEGMENTS)
    for _ in range(60):
        send(client, "orders", b"x" * 100)
    reader = world.connect()
    held = fetched(reader.ask(fetch("orders"), NAMED))
    world.advance(10 * MINUTE_MS)
    assert values_in(held), "what was sent before stays what it was"
    answer = fetched(reader.ask(fetch("orders"), NAMED))
    earliest, _ = offsets(client, "orders")
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and 0 < earliest < 60


def test_a_long_poll_below_the_new_beginning_is_woken() -> None:
    world = World()
    client, reader = world.connect(), world.connect()
    create(client, "orders", retention_bytes="2000", **SMALL_SEGMENTS)
    for _ in range(60):
        send(client, "orders", b"x" * 100)
    reader.post(fetch("orders", wait_ms=20 * MINUTE_MS, min_bytes=1 << 20), version=NAMED)
    world.advance(10 * MINUTE_MS)
    assert fetched(reader.take()).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_log_that_is_deleted_to_its_end_keeps_its_offsets() -> None:
    world = World()
    client = world.connect()
    create(client, "orders", retention_ms="600000", **SMALL_SEGMENTS)
    for _ in range(20):
        send(client, "orders", b"x" * 100)
    world.advance(30 * MINUTE_MS)
    assert offsets(client, "orders") == (20, 20)
    world.restart()
    client = world.connect()
    assert offsets(client, "orders") == (20, 20)
    batch = batch_of(b"next", timestamp=world.now.wall_ms)
    assert acknowledged(client.ask(produce("orders", batch=batch), NAMED)).base_offset == 20


# DeleteRecords.


def test_deleted_records_are_not_served() -> None:
    client = World().connect()
    create(client, "orders")
    for number in range(10):
        send(client, "orders", b"%d" % number)
    assert deleted(client, 4) == (0, 4)
    assert offsets(client, "orders") == (4, 10)
    assert read_all(client, "orders") == [b"%d" % number for number in range(4, 10)]
    assert fetched(client.ask(fetch("orders", 3), NAMED)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def deleted(client: Client, before: int, topic: str = "orders") -> tuple[int, int]:
    (only,) = client.ask(delete_records(topic, before)).topics[0].partitions
    return only.error_code, only.low_watermark


def test_the_beginning_only_moves_forward() -> None:
    client = World().connect()
    create(client, "orders")
    for _ in range(10):
        send(client, "orders", b"x")
    assert deleted(client, 6) == (0, 6)
    assert deleted(client, 2) == (0, 6), "gone already"
    assert deleted(client, 11) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert deleted(client, -2) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert deleted(client, -1) == (0, 10), "everything that is committed"
    assert send(client, "orders", b"y") == 10


def test_only_committed_records_can_be_deleted() -> None:
    world = World()
    client = world.connect()
    create(client, "safe", flush_messages="1")
    world.holds_flushes = True
    world.connect().post(produce("safe", b"x"), version=NAMED)
    assert deleted(client, 1, "safe") == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert deleted(client, -1, "safe") == (0, 0)


def test_records_of_a_compacted_topic_cannot_be_deleted() -> None:
    client = compacted_topic(World())
    write_keys(client, "table", {b"k": b"k=v"})
    assert deleted(client, 1, "table") == (ErrorCode.POLICY_VIOLATION, -1)


def test_the_segments_of_deleted_records_go(tmp_path: Path, real_files: RealFiles) -> None:
    world = World(real_files)
    client = world.connect()
    create(client, "orders", file_delete_delay_ms="0", **SMALL_SEGMENTS)
    for _ in range(60):
        send(client, "orders", b"x" * 100)
    before = len(list((tmp_path / "orders-0").glob("*.log")))
    deleted(client, 50)
    world.advance(11 * MINUTE_MS)
    assert len(list((tmp_path / "orders-0").glob("*.log"))) < before / 3
    assert offsets(client, "orders") == (50, 60)


def test_unknown_partitions_and_empty_requests() -> None:
    client = World().connect()
    create(client, "orders")
    assert client.ask(DeleteRecordsRequest(topics=[], timeout_ms=1_000)).topics == []
    wanted = DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=5, offset=0)])
    (only,) = client.ask(DeleteRecordsRequest(topics=[wanted], timeout_ms=1_000)).topics[0].partitions
    assert only.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# Compaction.


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "files"])
def test_of_every_key_the_last_value_stays(on_disk: bool, real_files: RealFiles) -> None:
    """Written and read while the compaction is at work; a reader of the whole log has the same table at any time."""
    world = World(real_files if on_disk else None)
    client = compacted_topic(world)
    random = Random(3)
    table: dict[bytes, bytes] = {}
    for _ in range(15):
        for _ in range(20):
            key = b"key%d" % random.randrange(12)
            table[key] = b"%d" % random.randrange(1_000)
            write_keys(client, "table", {key: key + b"=" + table[key] + b"." * 30})
        world.advance(5_000)
        expected = {key: value + b"." * 30 for key, value in table.items()}
        assert keys_and_values(client, "table") == expected
    assert len(read_all(client, "table")) < 100, "of 300 records"
    assert offsets(client, "table")[1] == 300
    world.kill()
    assert keys_and_values(world.connect(), "table") == expected


def test_requests_come_between_the_slices_of_a_compaction() -> None:
    """One slice a wake-up: the node never stops for the whole of it."""
    world = World()
    client = compacted_topic(world, internal_segment_bytes="100000")
    for number in range(300):
        write_keys(client, "table", {b"%d" % (number % 10): b"%d=x" % (number % 10) + b"." * 5_000})
    world.effects.clear()
    world.advance(16_000)
    assert sum(isinstance(effect, Wake) for effect in world.effects) >= 300 * 5_000 // (256 << 10)


def test_a_compaction_waits_for_its_flush() -> None:
    """Before a copy takes the place of its originals it is on disk."""
    world = World()
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.holds_flushes = True
    world.advance(20_000)
    assert len(world.flushes) == 1
    assert all(file.path.endswith(".cleaned") for group in world.flushes[0].groups for file in group)
    reader = world.connect()
    assert len(read_all(reader, "table")) == 60
    world.flush()
    world.holds_flushes = False
    world.advance(20_000)
    assert len(read_all(reader, "table")) < 20


def test_a_compaction_whose_flush_fails_leaves_the_log_as_it_was_and_is_tried_again() -> None:
    world = World()
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.holds_flushes = True
    world.advance(20_000)
    world.flush(error="Input/output error")
    world.holds_flushes = False
    world.advance(1_000)
    assert len(read_all(client, "table")) == 60 and world.told_of(CompactionFailed)
    world.advance(60_000)
    assert len(read_all(client, "table")) < 20
    assert not [name for name in world.disk.names if name.endswith(".cleaned")]


def test_a_failed_flush_of_a_compaction_takes_nobody_else_offline() -> None:
    """Its copy is nobody's data yet. A producer whose records share the flush is told, and its partition is safe on
    disk or offline; but the compacted log itself is as it was."""
    world = World()
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.holds_flushes = True
    world.advance(20_000)
    world.flush(error="Input/output error")
    world.holds_flushes = False
    write_keys(client, "table", {b"k": b"k=last"})
    assert not world.told_of(PartitionFailed)


def test_a_compaction_that_finds_the_disk_full_leaves_the_log_as_it_was() -> None:
    world = World()
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.disk.failure = lambda call, path: DiskFull("no space") if call == "append" and ".cleaned" in path else None
    world.advance(60_000)
    assert len(read_all(client, "table")) == 60 and world.told_of(CompactionFailed)
    world.disk.failure = lambda call, path: None
    write_keys(client, "table", {b"k": b"k=last"})
    world.advance(60_000)
    assert len(read_all(client, "table")) < 20
    assert keys_and_values(client, "table") == {b"k": b"last"}


@pytest.mark.parametrize("slices", [3, 6, 12, 24])
def test_a_topic_made_anew_is_not_touched_by_the_compaction_of_the_old_one(
    tmp_path: Path, real_files: RealFiles, slices: int
) -> None:
    """The compaction is under way when its topic is deleted and another takes its name and its directory."""
    world = World(real_files)
    client = compacted_topic(world, internal_segment_bytes="100000")
    for number in range(120):
        write_keys(client, "table", {b"%d" % (number % 7): b"%d=x" % (number % 7) + b"." * 20_000})
    world.advance(CLEANER_PAUSE_MS - 1)
    for _ in range(slices):
        world.wake()
    delete(client, "table")
    create(client, "table", cleanup_policy="compact", **SMALL_SEGMENTS)
    world.advance(60_000)
    write_keys(client, "table", {b"new": b"new=1"})
    world.advance(60_000)
    world.restart()
    client = world.connect()
    write_keys(client, "table", {b"newer": b"newer=2"})
    assert offsets(client, "table") == (0, 2)
    assert keys_and_values(client, "table") == {b"new": b"1", b"newer": b"2"}
    assert sorted(path.name for path in (tmp_path / "table-0").glob("*.log*")) == ["00000000000000000000.log"]
    assert not world.told_of(CompactionFailed), "a topic that goes is no failure"


def test_a_topic_made_anew_does_not_inherit_how_far_the_old_one_was_clean() -> None:
    """The old one was clean to the end; of the new one's keys, too, the last value stays."""
    world = World()
    client = compacted_topic(world)
    for _ in range(2):
        for number in range(60):
            write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
        world.advance(60_000)
        assert len(read_all(client, "table")) < 20
        delete(client, "table")
        compacted_topic(world)


def test_the_flush_of_a_compaction_whose_topic_is_deleted_harms_nobody(real_files: RealFiles) -> None:
    """The deletion is being flushed when the compaction wants its copy on disk; by then the directory has moved."""
    world = World(real_files)
    client = compacted_topic(world)
    create(client, "safe", flush_messages="1")
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.holds_flushes = True
    deleting, writing = world.connect(), world.connect()
    deleting.post(deletion("table", timeout_ms=60_000))
    world.advance(20_000)
    writing.post(produce("safe", b"x"), version=NAMED)
    world.holds_flushes = False
    world.flush()
    assert deleting.take().responses[0].error_code == ErrorCode.NONE
    assert acknowledged(writing.take()).error_code == ErrorCode.NONE
    assert not world.told_of(PartitionFailed)
    create(client, "still-works")


def test_a_tombstone_takes_its_key_along_after_its_time() -> None:
    world = World()
    client = compacted_topic(world, delete_retention_ms="30000")
    write_keys(client, "table", {b"a": b"a=1", b"b": b"b=1"})
    write_keys(client, "table", {b"a": None})
    for number in range(60):
        write_keys(client, "table", {b"fill": b"fill=%d" % number + b"." * 50})
    world.advance(40_000)
    for number in range(60):
        write_keys(client, "table", {b"fill": b"fill=%d" % number + b"." * 50})
    world.advance(120_000)
    for number in range(60):
        write_keys(client, "table", {b"fill": b"fill=%d" % number + b"." * 50})
    world.advance(120_000)
    assert set(keys_and_values(client, "table")) == {b"b", b"fill"}


# Checkpoints on a disk that refuses.


@pytest.mark.parametrize("failure", [DiskFull("no space"), DiskFailed("Input/output error")], ids=["full", "EIO"])
def test_a_checkpoint_that_cannot_be_written_stops_nothing(failure: DiskFailed) -> None:
    """It only saves work after a crash."""
    world = World()
    client = world.connect()
    create(client, "orders")
    send(client, "orders", b"x")
    world.disk.failure = lambda call, path: failure if call == "write_whole" and "checkpoint" in path else None
    world.advance(5 * MINUTE_MS)
    assert send(client, "orders", b"y") == 1
    world.disk.failure = lambda call, path: None
    world.advance(5 * MINUTE_MS)
    assert b"orders 0 2" in world.disk.read_whole("replication-offset-checkpoint")


def test_a_directory_that_cannot_be_removed_stops_nothing() -> None:
    world = World()
    client = world.connect()
    create(client, "orders")
    create(client, "others")
    delete(client, "orders")
    world.disk.failure = lambda call, path: DiskFailed("not allowed") if call == "remove_directory" else None
    world.advance(MINUTE_MS)
    assert send(client, "others", b"y") == 0


@pytest.mark.parametrize(
    "counts, most, share", [([], 10, 10), ([3, 4], 10, 10), ([1, 50, 50], 21, 10), ([9, 9, 9], 2, 1), ([100], 30, 30)]
)
def test_a_share_is_as_large_as_all_together_allow(counts: list[int], most: int, share: int) -> None:
    assert largest_share(counts, most) == share


def test_producers_of_all_partitions_together_have_a_bound_and_it_is_said_once() -> None:
    world = World(klamm_broker_max_producers="60")
    client = world.connect()
    create(client, "few")
    create(client, "many")
    for topic, first, count in (("few", 0, 10), ("many", 100, 200)):
        for number in range(first, first + count):
            batch = batch_of(b"x", producer=(number, 0, 0))
            assert acknowledged(client.ask(produce(topic, batch=batch), NAMED)).error_code == ErrorCode.NONE
    world.advance(25_000)
    assert len(world.partition("few").log.producers) == 10
    assert len(world.partition("many").log.producers) <= 50
    for number in range(300, 400):
        client.ask(produce("many", batch=batch_of(b"x", producer=(number, 0, 0))), NAMED)
    world.advance(25_000)
    assert len(world.partition("many").log.producers) <= 50
    assert len(world.told_of(ProducersForgotten)) == 1
