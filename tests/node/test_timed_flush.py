"""`flush.ms` and `log.flush.interval.ms`: what was written is on disk after that time, and where nothing was written
there is nothing to flush.

A topic with `flush.ms=100` and two partitions, records in one of them: the other one has no directory yet, and a flush
of it took both offline, after every restart anew.
"""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.broker.facts import PartitionFailed
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.log.files import DiskFailed
from klamm.node.effects import Flush, Wake
from klamm.node.facts import FlushFailed, MetadataFailed
from klamm.runtime.files import RealFiles
from tests.node.requests import (
    NAMED,
    acknowledged,
    create,
    creation,
    produce,
    read_all,
    send,
)
from tests.node.test_restart import alter
from tests.node.world import Client, World

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
EIO = "Input/output error"


def flushed_directories(world: World) -> list[str]:
    flushes = [effect for effect in world.effects if isinstance(effect, Flush)]
    return [file.path.split("/")[0] for flush in flushes for group in flush.groups for file in group]


def recovery_point(world: World, topic: str, index: int = 0) -> int:
    found = checkpoint.read_offsets(world.files.read_whole(checkpoint.RECOVERY_POINTS))
    assert found is not None
    return found.get(TopicPartition(topic, index), 0)


# What is due.


@pytest.fixture(params=["in memory", "on a real disk"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(RealFiles(tmp_path) if request.param == "on a real disk" else None)


def test_what_was_written_is_on_disk_after_flush_ms(world: World) -> None:
    client = world.connect()
    create(client, "timed", 2, flush_ms="100")
    send(client, "timed", b"x")
    world.advance(99)
    assert world.partition("timed").log.recovery_point == 0
    world.advance(1)
    assert world.partition("timed").log.recovery_point == 1
    send(client, "timed", b"y")
    world.advance(100)
    assert world.partition("timed").log.recovery_point == 2


@pytest.mark.parametrize(
    ("configs", "settings"),
    [({"flush_ms": "100"}, {}), ({"flush_ms": "0"}, {}), ({}, {"log_flush_interval_ms": "100"})],
)
def test_a_partition_without_records_has_nothing_to_flush(
    world: World, configs: dict[str, str], settings: dict[str, str]
) -> None:
    world.restart(**settings)
    client = world.connect()
    create(client, "timed", 2, **configs)
    for _ in range(3):
        send(client, "timed", b"x")
        world.advance(1_000)
        assert "timed-1" not in flushed_directories(world) and not world.files.exists("timed-1")
        assert world.told_of(PartitionFailed) == []
        world.kill()
        world.restart()
        client = world.connect()
    assert read_all(client, "timed") == [b"x"] * 3


def test_who_has_nothing_to_flush_is_not_woken_for_it(world: World) -> None:
    """It armed its timer again and again, for as long as the process lived."""
    client = world.connect()
    create(client, "timed", 50, flush_ms="10")
    send(client, "timed", b"x")
    world.advance(100)
    world.effects.clear()
    world.advance(1_000)
    assert [effect for effect in world.effects if isinstance(effect, Flush)] == []
    assert len([effect for effect in world.effects if isinstance(effect, Wake)]) < 50


def test_any_topic_may_be_altered(world: World) -> None:
    """One alter of any client was enough."""
    client = world.connect()
    create(client, "orders", 2)
    send(client, "orders", b"x")
    alter(client, "orders", "flush.ms", "50")
    world.advance(50)
    assert world.partition("orders").log.recovery_point == 1 and world.told_of(PartitionFailed) == []


def test_a_shorter_time_counts_at_once(world: World) -> None:
    client = world.connect()
    create(client, "timed", flush_ms="3600000")
    send(client, "timed", b"x")
    alter(client, "timed", "flush.ms", "50")
    world.advance(50)
    assert world.partition("timed").log.recovery_point == 1


@pytest.mark.parametrize("setting", [{"flush_messages": "3"}, {"log_flush_interval_messages": "3"}])
def test_so_many_records_are_flushed(world: World, setting: dict[str, str]) -> None:
    if "flush_messages" in setting:
        client = world.connect()
        create(client, "counted", **setting)
    else:
        world.restart(**setting)
        client = world.connect()
        create(client, "counted")
    for recovery_point in (0, 0, 3, 3):
        send(client, "counted", b"x")
        assert world.partition("counted").log.recovery_point == recovery_point


# Who fails.


@pytest.fixture
def held() -> World:
    """Two topics that wait for the disk, and flushes held back until there are several owners in one."""
    world = World()
    client = world.connect()
    create(client, "safe", 3, flush_messages="1")
    create(client, "other", 1, flush_messages="1")
    send(client, "other", b"before")
    world.holds_flushes = True
    client.post(produce("safe", b"x", index=2), version=NAMED)
    return world


def posted(world: World, topic: str, index: int = 0) -> Client:
    client = world.connect()
    client.post(produce(topic, b"x", index=index), version=NAMED)
    return client


def test_one_file_that_fails_costs_its_own_partition_and_nobody_else(held: World) -> None:
    first, second, third = posted(held, "safe", 0), posted(held, "safe", 1), posted(held, "other")
    creating = held.connect()
    creating.post(creation("new"))
    held.flush()
    held.flush(error=f"safe-1/00.log: {EIO}", fails_for=lambda path: path.startswith("safe-1/"))
    assert acknowledged(second.take()).error_code == STORAGE_ERROR
    assert acknowledged(first.take()).error_code == acknowledged(third.take()).error_code == 0
    assert creating.take().topics[0].error_code == 0
    assert [fact.partition for fact in held.told_of(PartitionFailed)] == ["safe-1"]
    assert [str(fact.logs) for fact in held.told_of(FlushFailed)] == ["1"]
    held.holds_flushes = False
    assert send(held.connect(), "other", b"after") == 2


def test_the_metadata_log_that_fails_costs_no_partition(held: World) -> None:
    writing, creating = posted(held, "safe", 0), held.connect()
    creating.post(creation("new"))
    held.flush()
    held.flush(error=f"__cluster_metadata-0/00.log: {EIO}", fails_for=lambda path: path.startswith("__cluster"))
    assert acknowledged(writing.take()).error_code == 0
    assert creating.take().topics[0].error_code != 0
    assert held.told_of(PartitionFailed) == [] and len(held.told_of(MetadataFailed)) == 1


def test_a_partition_counts_as_flushed_when_all_of_its_files_are(held: World) -> None:
    """The name is as necessary as the records: without it they belong to nobody after a power loss."""
    client = posted(held, "safe", 0)
    held.flush()
    name = "safe-0/partition.metadata"
    assert [file.path for file in held.flushes[0].groups[0]][-1] == name
    held.flush(error=f"{name}: {EIO}", fails_for=lambda path: path == name)
    assert acknowledged(client.take()).error_code == STORAGE_ERROR
    assert held.partition("safe").log.recovery_point == 0


def test_a_topic_that_is_deleted_meanwhile_fails_nobody(held: World) -> None:
    """In a cluster the others may commit that while this node's flush is under way."""
    other = posted(held, "other")
    posted(held, "safe", 1)
    held.flush()
    assert len(held.flushes[0].groups) == 2
    assert len(list(held.broker.partitions.delete(held.broker.image.topics["safe"]))) == 3
    held.flush(error="safe-1/partition.metadata: No such file or directory", fails_for=lambda path: "safe-1" in path)
    assert acknowledged(other.take()).error_code == 0
    assert held.told_of(PartitionFailed) == [] and held.told_of(FlushFailed) == []


def test_what_was_not_flushed_is_not_noted_as_flushed_at_the_stop(held: World) -> None:
    """The checkpoint said it was: recovery would have believed in records that never reached the disk."""
    held.flush(error=EIO)
    held.stop()
    assert recovery_point(held, "safe", 2) == 0


def test_when_logs_are_opened_one_that_cannot_be_flushed_is_offline_alone() -> None:
    world = World()
    client = world.connect()
    create(client, "orders", 3)
    for index in range(3):
        send(client, "orders", b"x", index=index)
    world.disk.failure = refusing("orders-1/00000000000000000000.log")
    world.kill()
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["orders-1"]
    client = world.connect()
    assert [error_of(client, index) for index in range(3)] == [0, STORAGE_ERROR, 0]


def test_a_node_whose_metadata_cannot_be_flushed_does_not_start() -> None:
    world = World()
    world.disk.failure = refusing("__cluster_metadata-0/00000000000000000000.log")
    with pytest.raises(DiskFailed, match=r"__cluster_metadata-0/.*Input/output error"):
        world.kill()


def refusing(path: str) -> Callable[[str, str], DiskFailed | None]:
    def failure(call: str, of: str) -> DiskFailed | None:
        return DiskFailed(f"{of}: {EIO}", errno.EIO) if (call, of) == ("flush", path) else None

    return failure


def error_of(client: Client, index: int) -> int:
    return int(acknowledged(client.ask(produce("orders", b"y", index=index), NAMED)).error_code)
