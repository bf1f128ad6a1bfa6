"""A disk that refuses while the node is at work (F19): the client hears it, nothing false is acknowledged, nobody else
is touched, and the node lives on. A full disk passes: when there is room again, writing goes on without a restart."""

from collections.abc import Callable
from random import Random

import pytest

from klamm.broker.facts import (
    PartitionFailed,
    PartitionRevived,
    StorageFailing,
    StorageFull,
    StorageHasRoom,
    StorageQuiet,
)
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed, DiskFull
from klamm.node.facts import ChoreFailed, HandlerFailed
from klamm.runtime.health import why_not_ready
from klamm.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResult
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.node.requests import (
    NAMED,
    acknowledged,
    batch_of,
    create,
    creation,
    delete,
    delete_records,
    deletion,
    fetch,
    fetched,
    metadata,
    offsets,
    produce,
    produce_to,
    read_all,
    send,
)
from tests.node.world import BEGINNING, Client, World

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
FULL, BROKEN = DiskFull, DiskFailed
BOTH = pytest.mark.parametrize("failure", [FULL, BROKEN], ids=["full", "broken"])
REVIVAL_MS = 6_000


@pytest.fixture
def world() -> World:
    world = World()
    client = world.connect()
    create(client, "orders")
    create(client, "others")
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def refuse(world: World, failure: type[DiskFailed], refused: Callable[[str, str], bool]) -> None:
    """From now on the disk refuses these calls, given by name and path."""
    world.disk.failure = lambda call, path: failure(f"{path}: refused") if refused(call, path) else None


def mend(world: World) -> None:
    world.disk.failure = lambda call, path: None


def refusal(client: Client, topic: str = "orders") -> int:
    answer = acknowledged(client.ask(produce(topic, b"refused"), NAMED))
    assert answer.base_offset == -1
    code: int = answer.error_code
    return code


# Writing.


def test_a_write_that_fails_takes_the_partition_offline(world: World, client: Client) -> None:
    send(client, "orders", b"before")
    refuse(world, BROKEN, lambda call, path: call == "append" and path.startswith("orders-0/"))
    assert refusal(client) == STORAGE_ERROR
    mend(world)
    assert refusal(client) == STORAGE_ERROR, "whether that disk can be trusted is for a person to say"
    assert send(client, "others", b"x") == 0
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["orders-0"]
    world.stop()
    world.start_again()
    client = world.connect()
    assert read_all(client, "orders") == [b"before"] and send(client, "orders", b"after") == 1


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(world: World, client: Client) -> None:
    send(client, "orders", b"before")
    refuse(world, FULL, lambda call, path: call == "append" and path.startswith("orders-0/"))
    assert refusal(client) == refusal(client) == STORAGE_ERROR
    assert read_all(client, "orders") == [b"before"], "it can still be read"
    mend(world)
    world.advance(REVIVAL_MS)
    assert send(client, "orders", b"after") == 1
    assert read_all(client, "orders") == [b"before", b"after"]


def test_a_full_disk_is_told_once_and_that_it_has_room_again_once(world: World, client: Client) -> None:
    """Nobody was told: no line, no metric, and the node called itself ready."""
    send(client, "orders", b"before")
    refuse(world, FULL, lambda call, path: call in ("append", "write_whole"))
    world.disk.free_bytes = 100
    for _ in range(5):
        assert refusal(client) == refusal(client, "others") == STORAGE_ERROR
        world.advance(30_000)
    assert len(world.told_of(StorageFull)) == 1 and not world.told_of(StorageHasRoom) + world.told_of(ChoreFailed)
    assert "delete topics or records" in str(world.told_of(StorageFull)[0])
    assert world.node.broker.storage.refused >= 10
    assert why_not_ready(world.node, world.now) == [f"the disk is full: {world.node.broker.storage.full}"]
    mend(world)
    world.advance(REVIVAL_MS)
    assert not world.told_of(StorageHasRoom), "a hundred bytes are no room"
    world.disk.free_bytes = 1 << 30
    world.advance(REVIVAL_MS)
    assert len(world.told_of(StorageFull)) == len(world.told_of(StorageHasRoom)) == 1
    assert why_not_ready(world.node, world.now) == []
    assert send(client, "orders", b"after") == 1


def test_a_disk_without_room_is_full_before_anybody_writes(world: World, client: Client) -> None:
    world.disk.free_bytes = 1_000
    world.advance(REVIVAL_MS)
    assert [fact.reason for fact in world.told_of(StorageFull)] == [f"1000 of {world.disk.space()[0]} bytes are free"]


def test_what_is_refused_though_the_disk_has_room_is_a_quota(world: World, client: Client) -> None:
    """The file system says that there is plenty: it is over when nothing was refused for a while."""
    send(client, "orders", b"before")
    refuse(world, FULL, lambda call, path: call == "append")
    for _ in range(4):
        assert refusal(client) == STORAGE_ERROR
        world.advance(REVIVAL_MS)
    assert len(world.told_of(StorageFull)) == 1 and not world.told_of(StorageHasRoom)
    world.advance(2 * REVIVAL_MS)
    assert len(world.told_of(StorageHasRoom)) == 1


def test_a_disk_that_cannot_be_read_is_told_once_and_when_it_is_quiet_again(world: World, client: Client) -> None:
    """The reader heard of it, and nobody else."""
    send(client, "orders", b"before")
    refuse(world, BROKEN, lambda call, path: call in ("read", "region") and path.startswith("orders-0/"))
    for _ in range(3):
        assert fetched(client.ask(fetch("orders", 0), NAMED)).error_code == STORAGE_ERROR
        world.advance(REVIVAL_MS)
    assert len(world.told_of(StorageFailing)) == 1 and not world.told_of(StorageQuiet)
    assert world.node.broker.storage.failures >= 3
    mend(world)
    world.advance(120_000)
    assert len(world.told_of(StorageQuiet)) == 1
    assert fetched(client.ask(fetch("orders", 0), NAMED)).error_code == ErrorCode.NONE


def log_directory(client: Client) -> DescribeLogDirsResult:
    (directory,) = client.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert isinstance(directory, DescribeLogDirsResult)
    return directory


def lags(directory: DescribeLogDirsResult) -> dict[str, int]:
    return {topic.name: topic.partitions[0].offset_lag for topic in directory.topics}


def test_one_failed_log_among_others_leaves_the_node_ready(world: World, client: Client) -> None:
    assert lags(log_directory(client)) == {"orders": 0, "others": 0}
    refuse(world, BROKEN, lambda call, path: call == "append" and path.startswith("orders-0/"))
    assert refusal(client) == STORAGE_ERROR
    assert why_not_ready(world.node, world.now) == []
    assert log_directory(client).error_code == ErrorCode.NONE
    assert lags(log_directory(client)) == {"orders": -1, "others": 0}


def test_a_node_whose_logs_are_all_offline_is_not_ready(world: World, client: Client) -> None:
    refuse(world, BROKEN, lambda call, path: call == "append")
    assert refusal(client) == refusal(client, "others") == STORAGE_ERROR
    (why,) = why_not_ready(world.node, world.now)
    assert why.startswith("the logs of all partitions here are offline: ")
    assert log_directory(client).error_code == STORAGE_ERROR


def test_the_directory_of_a_full_disk_has_an_error(world: World, client: Client) -> None:
    refuse(world, FULL, lambda call, path: call == "append")
    world.disk.free_bytes = 100
    assert refusal(client) == STORAGE_ERROR
    directory = log_directory(client)
    assert (directory.error_code, directory.usable_bytes) == (STORAGE_ERROR, 100)
    assert lags(directory).keys() == {"orders", "others"}, "they are there, and can be read"


def test_a_full_disk_while_an_index_is_written(world: World, client: Client) -> None:
    """The batch is in the log, its index entries find no room. It must not be there twice, nor its offset."""
    create(client, "indexed", index_interval_bytes="1")
    refuse(world, FULL, lambda call, path: call == "append" and path.endswith("index"))
    acknowledged_values: list[bytes] = []
    for number in range(200):
        answer = acknowledged(client.ask(produce("indexed", b"%d" % number), NAMED))
        if answer.error_code == ErrorCode.NONE:
            assert answer.base_offset == len(acknowledged_values)
            acknowledged_values.append(b"%d" % number)
    mend(world)
    world.advance(REVIVAL_MS)
    send(client, "indexed", b"after")
    stored = read_all(client, "indexed")
    assert [each for each in stored if each in {*acknowledged_values, b"after"}] == [*acknowledged_values, b"after"]
    world.kill()
    assert read_all(world.connect(), "indexed") == stored


@pytest.mark.parametrize("ending", [".log", ".snapshot", ".index", ".timeindex"])
def test_a_full_disk_while_a_segment_is_rolled(world: World, client: Client, ending: str) -> None:
    create(client, "rolling", internal_segment_bytes="1000", index_interval_bytes="100")
    refuse(world, FULL, lambda call, path: path.startswith("rolling-0/") and path.endswith(ending))
    world.disk.free_bytes = 0
    values = []
    for number in range(40):
        answer = acknowledged(client.ask(produce("rolling", b"%d" % number + b"." * 60), NAMED))
        assert answer.error_code in (ErrorCode.NONE, STORAGE_ERROR)
        if answer.error_code == ErrorCode.NONE:
            values.append(b"%d" % number + b"." * 60)
    world.advance(REVIVAL_MS)
    assert send(client, "others", b"x") == 0
    mend(world)
    world.disk.free_bytes = 1 << 30
    world.advance(REVIVAL_MS)
    send(client, "rolling", b"after")
    assert [each for each in read_all(client, "rolling") if each in {*values, b"after"}] == [*values, b"after"]


def test_a_log_that_failed_for_want_of_room_comes_back_by_itself(world: World, client: Client) -> None:
    """Between two segments it cannot just go on. It is recovered when there is room, not before."""
    create(client, "rolling", internal_segment_bytes="1000")
    send(client, "rolling", b"x" * 800)
    refuse(world, FULL, lambda call, path: call in ("append", "write_whole") and path.startswith("rolling-0/"))
    world.disk.free_bytes = 0
    assert acknowledged(client.ask(produce("rolling", b"y" * 800), NAMED)).error_code == STORAGE_ERROR
    mend(world)
    world.advance(REVIVAL_MS)
    offline = acknowledged(client.ask(produce("rolling", b"y" * 800), NAMED)).error_code == STORAGE_ERROR
    world.disk.free_bytes = 1 << 30
    world.advance(REVIVAL_MS)
    assert send(client, "rolling", b"after") == (1 if offline else 2)
    assert read_all(client, "rolling")[0] == b"x" * 800
    assert [fact.partition for fact in world.told_of(PartitionRevived)] == (["rolling-0"] if offline else [])


@BOTH
def test_an_epoch_checkpoint_that_cannot_be_written(world: World, client: Client, failure: type[DiskFailed]) -> None:
    """It is written along with a flush, and never the only copy of a fact. The node lives, and what it acknowledges is
    on disk."""
    create(client, "safe", flush_messages="1")
    refuse(world, failure, lambda call, path: call == "write_whole" and path.endswith("leader-epoch-checkpoint"))
    answer = acknowledged(client.ask(produce("safe", b"x"), NAMED))
    assert answer.error_code in (ErrorCode.NONE, STORAGE_ERROR)
    assert send(client, "others", b"y") == 0
    mend(world)
    world.lose_power(Random(1))
    if answer.error_code == ErrorCode.NONE:
        assert read_all(world.connect(), "safe") == [b"x"]


# Topics.


@BOTH
@pytest.mark.parametrize("call", ["make_directory", "write_whole"])
def test_a_topic_whose_directory_cannot_be_made(
    world: World, client: Client, failure: type[DiskFailed], call: str
) -> None:
    """It is in the metadata log, so it exists; its partition is offline, and a restart with room brings it up."""
    refuse(world, failure, lambda each, path: each == call and path.startswith("new-0"))
    client.ask(creation("new"))
    assert refusal(client, "new") in (STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert send(client, "others", b"x") == 0
    mend(world)
    world.kill()
    client = world.connect()
    assert client.ask(metadata("new")).topics[0].error_code == ErrorCode.NONE
    assert send(client, "new", b"x") == 0


@BOTH
def test_a_topic_whose_directory_cannot_be_set_aside(world: World, client: Client, failure: type[DiskFailed]) -> None:
    send(client, "orders", b"old")
    refuse(world, failure, lambda call, path: call == "rename" and path == "orders-0")
    delete(client, "orders")
    assert send(client, "others", b"x") == 0
    assert client.ask(metadata("orders")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    mend(world)
    world.kill()
    client = world.connect()
    create(client, "orders")
    assert offsets(client, "orders") == (0, 0)


def test_a_metadata_log_without_room_refuses_and_goes_on(world: World, client: Client) -> None:
    refuse(world, FULL, lambda call, path: call == "append" and path.startswith("__cluster_metadata-0/"))
    assert client.ask(creation("new")).topics[0].error_code == STORAGE_ERROR
    assert client.ask(deletion("orders")).responses[0].error_code == STORAGE_ERROR
    client.ask(metadata("spoken-of", create_missing=True))
    assert send(client, "orders", b"x") == 0
    mend(world)
    create(client, "new")
    assert client.ask(metadata("spoken-of")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.kill()
    assert world.connect().ask(metadata("new")).topics[0].error_code == ErrorCode.NONE


# Reading.


def unreadable(world: World) -> None:
    refuse(world, BROKEN, lambda call, path: call == "read" and path.startswith("orders-0/"))


def test_a_fetch_that_cannot_read(world: World, client: Client) -> None:
    send(client, "orders", b"x")
    unreadable(world)
    assert fetched(client.ask(fetch("orders"), NAMED)).error_code == STORAGE_ERROR
    assert not world.told_of(HandlerFailed), "a broken disk is no bug of ours"


def test_a_long_poll_that_wakes_and_cannot_read(world: World, client: Client) -> None:
    client.post(fetch("orders", wait_ms=500), version=NAMED)
    unreadable(world)
    send(world.connect(), "orders", b"x")
    assert fetched(client.take()).error_code == STORAGE_ERROR


def test_a_long_poll_for_many_bytes_that_wakes_and_cannot_read(world: World, client: Client) -> None:
    client.post(fetch("orders", wait_ms=500, min_bytes=1_000), version=NAMED)
    unreadable(world)
    send(world.connect(), "orders", b"x")
    world.advance(500)
    assert fetched(client.take()).error_code == STORAGE_ERROR


def test_a_lookup_by_time_that_cannot_read(world: World, client: Client) -> None:
    send(client, "orders", b"x")
    unreadable(world)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=BEGINNING.wall_ms)
    topic = ListOffsetsTopic(name="orders", partitions=[wanted])
    answer = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]))
    assert answer.topics[0].partitions[0].error_code == STORAGE_ERROR


# Stopping.


@BOTH
def test_a_shutdown_on_a_disk_that_refuses_ends_all_the_same(
    world: World, client: Client, failure: type[DiskFailed]
) -> None:
    """Without the marker, so that the next start recovers."""
    send(client, "orders", b"x")
    refuse(world, failure, lambda call, path: call in ("append", "write_whole", "flush"))
    world.stop()
    mend(world)
    assert not world.disk.exists(".kafka_cleanshutdown")
    world.start_again()
    assert read_all(world.connect(), "orders") == [b"x"]


# Everything, anywhere.


SETTINGS = {"internal_segment_bytes": "600", "index_interval_bytes": "50", "retention_bytes": "4000"}


def busy_day(world: World) -> dict[str, list[bytes]]:
    """A bit of everything that touches the disk. Returns what was acknowledged by topics that wait for the disk."""
    client = world.connect()
    acknowledgements: dict[str, list[bytes]] = {}
    for topic, configs in (("safe", {"flush_messages": "1"}), ("table", {"cleanup_policy": "compact"}), ("gone", {})):
        client.ask(creation(topic, **SETTINGS | configs))
    for number in range(60):
        for topic in ("safe", "table", "gone"):
            value = b"%s %d" % (topic.encode(), number)
            answer = client.ask(produce(topic, batch=keyed(value)), NAMED)
            if acknowledged(answer).error_code == ErrorCode.NONE and topic == "safe":
                acknowledgements.setdefault(topic, []).append(value)
        world.advance(1_500)
    client.ask(delete_records("gone", before=3))
    client.ask(deletion("gone"))
    client.ask(creation("gone", **SETTINGS))
    world.advance(400_000)
    return acknowledgements


def keyed(value: bytes) -> bytearray:
    return batch_of(value, keys=[value[-1:]])


@BOTH
@pytest.mark.parametrize("part", range(6))
def test_one_call_refused_anywhere_in_a_busy_day(part: int, failure: type[DiskFailed]) -> None:
    """Any single call of the disk may fail: the node never falls over, and what was acknowledged is there."""
    calls = counted_calls()
    for number in range(part, calls, max(1, calls // 15)):
        world = World()
        world.disk.failure = failing_call(number, failure)
        acknowledgements = busy_day(world)
        mend(world)
        world.kill()
        stored = read_all(world.connect(), "safe") if acknowledgements else []
        kept = acknowledgements.get("safe", [])
        missing = set(kept[-len(stored) :] if stored else kept) - set(stored)
        assert not missing, f"call {number}: {sorted(missing)} were acknowledged"


def counted_calls() -> int:
    world = World()
    before = world.disk.calls
    busy_day(world)
    return world.disk.calls - before


def failing_call(number: int, failure: type[DiskFailed]) -> Callable[[str, str], DiskFailed | None]:
    left = [number]

    def refused(call: str, path: str) -> DiskFailed | None:
        if call.startswith("read"):
            return None
        left[0] -= 1
        return failure(f"{path}: refused") if left[0] == -1 else None

    return refused


def test_what_was_proposed_before_the_metadata_log_broke_is_not_promised(world: World) -> None:
    """`a` is being flushed and `b` waits for the next flush when the disk breaks under `c`. That next flush could bring
    nothing to disk any more, so it must not make `b` true."""
    world.holds_flushes = True
    clients = [world.connect() for _ in range(3)]
    clients[0].post(creation("a"))
    clients[1].post(creation("b"))
    refuse(world, BROKEN, lambda call, path: call == "append" and path.startswith("__cluster_metadata-0/"))
    assert clients[2].ask(creation("c")).topics[0].error_code == STORAGE_ERROR
    mend(world)
    world.holds_flushes = False
    while world.flushes:
        world.flush()
    world.advance(60_000)
    assert clients[1].take().topics[0].error_code != ErrorCode.NONE


def test_one_partition_that_fails_does_not_fail_the_others_of_its_request(world: World, client: Client) -> None:
    create(client, "safe", 2, flush_messages="1")
    world.holds_flushes = True
    client.post(produce_to([("safe", 0), ("safe", 1)], b"x"), version=NAMED)
    first = world.broker.partitions.get("safe", 0)
    assert first is not None
    world.broker.fail(first, "broken")
    world.connect()  # A step in which the failure settles while the other partition still waits for the disk.
    world.holds_flushes = False
    while world.flushes:
        world.flush()
    answers = [topic.partition_responses[0].error_code for topic in client.take().responses]
    assert answers == [STORAGE_ERROR, ErrorCode.NONE]
