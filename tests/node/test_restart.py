"""A node stops, is killed, or loses its power, and is started again: everything that was promised is there."""

import contextlib
from random import Random

import pytest

from klamm.broker.facts import LogsOpened
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed
from klamm.metadata.image import Image
from klamm.sim.disk import Crashed
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.describe_cluster import DescribeClusterRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.node.requests import (
    NAMED,
    create,
    creation,
    delete,
    delete_records,
    fetch,
    fetched,
    leader_epoch,
    metadata,
    offsets,
    produce,
    read_all,
    send,
    values_in,
)
from tests.node.world import Client, World

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
ENDINGS = ["restart", "kill"]


@pytest.fixture
def world() -> World:
    return World()


def filled(world: World) -> Client:
    client = world.connect()
    create(client, "safe", 2, flush_messages="1")
    create(client, "quick", 2)
    for number in range(30):
        for topic in ("safe", "quick"):
            send(client, topic, b"%d" % number, index=number % 2)
    return client


def essence(image: Image) -> object:
    """What a restart must not change: everything but who is registered since when."""
    return (
        sorted(
            (topic.name, topic.topic_id, [(each.replicas, each.isr, each.leader) for each in topic.partitions])
            for topic in image.topics.values()
        ),
        {(int(kind), name): dict(values) for (kind, name), values in image.configs.items()},
        dict(image.features),
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_records_are_there_and_can_be_read_at_once(world: World, ending: str) -> None:
    """Also before anybody writes again: what was committed stays committed."""
    filled(world)
    getattr(world, ending)()
    client = world.connect()
    for topic in ("safe", "quick"):
        for index in range(2):
            assert offsets(client, topic, index) == (0, 15)
            assert read_all(client, topic, index) == [b"%d" % number for number in range(index, 30, 2)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_offsets_go_on_where_they_were(world: World, ending: str) -> None:
    filled(world)
    getattr(world, ending)()
    client = world.connect()
    assert send(client, "safe", b"next") == 15 and send(client, "quick", b"next") == 15


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_image_is_the_same(world: World, ending: str) -> None:
    client = filled(world)
    delete(client, "quick")
    create(client, "other", 3, retention_ms="12345")
    more = CreatePartitionsTopic(name="other", count=5, assignments=None)
    assert client.ask(CreatePartitionsRequest(topics=[more], timeout_ms=5_000)).results[0].error_code == 0
    before = essence(world.broker.image)
    cluster_id = client.ask(DescribeClusterRequest()).cluster_id
    getattr(world, ending)()
    assert essence(world.broker.image) == before
    assert world.connect().ask(DescribeClusterRequest()).cluster_id == cluster_id, "trap 53"


@pytest.mark.parametrize("ending", ENDINGS)
def test_settings_are_the_same_and_in_force(world: World, ending: str) -> None:
    client = world.connect()
    create(client, "orders")
    alter(client, "orders", "flush.messages", "1")
    getattr(world, ending)()
    client = world.connect()
    assert setting(client, "orders", "flush.messages") == "1"
    world.holds_flushes = True
    client.post(produce("orders", b"x"), version=NAMED)
    assert client.answers == [], "it waits for the disk"


def alter(client: Client, topic: str, name: str, value: str) -> None:
    change = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
    answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message


def setting(client: Client, topic: str, name: str) -> str:
    resource = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=[name])
    (only,) = client.ask(DescribeConfigsRequest(resources=[resource])).results[0].configs
    value: str = only.value
    return value


def test_a_clean_restart_keeps_the_leader_epoch(world: World) -> None:
    filled(world)
    for _ in range(3):
        world.restart()
    client = world.connect()
    assert leader_epoch(client, "safe") == leader_epoch(client, "quick") == 0


def test_an_unclean_restart_begins_a_new_leader_epoch(world: World) -> None:
    """What it might have lost and others might have read must be told from what it writes at the same offsets now."""
    filled(world)
    world.kill()
    client = world.connect()
    assert leader_epoch(client, "safe") == leader_epoch(client, "quick") == 1
    send(client, "safe", b"next")
    assert epoch_end(client, "safe", 0) == (0, 15) and epoch_end(client, "safe", 1) == (1, 16)
    world.kill()
    world.kill()
    client = world.connect()
    assert leader_epoch(client, "safe") == 3
    assert epoch_end(client, "safe", 1) == (1, 16) and epoch_end(client, "safe", 2) == (1, 16)


def epoch_end(client: Client, topic: str, epoch: int) -> tuple[int, int]:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    asked = OffsetForLeaderTopic(topic=topic, partitions=[wanted])
    (only,) = client.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked])).topics[0].partitions
    assert only.error_code == ErrorCode.NONE
    return only.leader_epoch, only.end_offset


def test_a_client_with_the_old_epoch_is_told(world: World) -> None:
    filled(world)
    world.kill()
    client = world.connect()
    request = fetch("safe")
    request.topics[0].partitions[0].current_leader_epoch = 0
    assert fetched(client.ask(request, NAMED)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    request.topics[0].partitions[0].current_leader_epoch = 2
    assert fetched(client.ask(request, NAMED)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


# The marker.


def test_the_clean_shutdown_marker_speaks_of_one_end(world: World) -> None:
    filled(world)
    assert not world.disk.exists(CLEAN_SHUTDOWN)
    world.stop()
    assert world.disk.exists(CLEAN_SHUTDOWN)
    world.start_again()
    assert not world.disk.exists(CLEAN_SHUTDOWN)
    world.kill()
    assert [fact.clean for fact in world.told_of(LogsOpened)] == [True, False]


def test_the_marker_comes_last() -> None:
    """Power is lost before every single call of a clean shutdown: if the marker is there, all records are on disk."""
    for number in range(200):
        world = World()
        filled(world)
        world.disk.calls, world.disk.crash_at = 0, number
        try:
            world.stop()
        except Crashed:
            assert not (world.disk.exists(CLEAN_SHUTDOWN) and unflushed(world, ".log"))
        else:
            return
        world.lose_power(Random(number))
        assert read_all(world.connect(), "safe") == [b"%d" % each for each in range(0, 30, 2)]
    raise AssertionError("a shutdown takes more calls than that")


def test_no_clean_shutdown_is_claimed_if_the_metadata_log_cannot_be_closed(world: World) -> None:
    filled(world)
    world.disk.failure = lambda call, path: (
        DiskFailed("Input/output error") if call == "flush" and "__cluster_metadata" in path else None
    )
    world.holds_flushes = True
    world.connect().post(creation("not-flushed-yet"))
    with contextlib.suppress(DiskFailed):
        world.stop()
    assert not world.disk.exists(CLEAN_SHUTDOWN)


def unflushed(world: World, *endings: str) -> list[str]:
    return sorted(name for name, inode in world.disk.names.items() if inode.changes and name.endswith(endings))


def test_a_marker_that_cannot_be_read_means_recovery(world: World) -> None:
    filled(world)
    world.stop()
    world.disk.write_whole(CLEAN_SHUTDOWN, b"\xff{")
    world.start_again()
    assert world.told_of(LogsOpened)[-1].clean is False
    assert read_all(world.connect(), "safe") == [b"%d" % each for each in range(0, 30, 2)]


# Readers.


@pytest.mark.parametrize("topic", ["safe", "quick"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_of_a_partition_never_goes_back_for_readers(world: World, topic: str, ending: str) -> None:
    """Trap 33, I14: Spark takes a decrease for lost data. So even the first answer after a start has the old end."""
    filled(world)
    world.holds_flushes = True
    getattr(world, ending)()
    client = world.connect()
    assert offsets(client, topic)[1] == 15
    assert len(values_in(fetched(client.ask(fetch(topic), NAMED)))) == 15


def test_deleted_records_stay_deleted(world: World) -> None:
    client = filled(world)
    client.ask(delete_records("quick", before=7))
    world.restart()
    client = world.connect()
    assert offsets(client, "quick") == (7, 15)
    assert fetched(client.ask(fetch("quick", 6), NAMED)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_deleted_records_stay_deleted_after_a_crash_once_it_was_noted(world: World) -> None:
    client = filled(world)
    client.ask(delete_records("quick", before=7))
    world.advance(61_000)
    world.kill()
    assert offsets(world.connect(), "quick") == (7, 15)


def test_an_offline_partition_does_not_forget_where_it_begins(world: World) -> None:
    """A checkpoint is written while its disk has failed: what was known of it before stays in there."""
    client = filled(world)
    client.ask(delete_records("safe", before=7))
    world.advance(61_000)
    world.holds_flushes = True
    client.post(produce("safe", b"lost"), version=NAMED)
    world.flush(error="Input/output error")
    world.holds_flushes = False
    world.advance(61_000)
    world.kill()
    assert offsets(world.connect(), "safe")[0] == 7


def test_many_lives(world: World) -> None:
    """Writes, and every kind of end in turn; offsets dense, epochs growing, nothing acknowledged is lost."""
    random = Random(11)
    create(world.connect(), "safe", flush_messages="1")
    written: list[bytes] = []
    epoch = 0
    for life in range(30):
        client = world.connect()
        for _ in range(random.randrange(6)):
            value = b"%d" % len(written)
            assert send(client, "safe", value) == len(written)
            written.append(value)
        ending = random.choice(["restart", "kill", "lose_power"])
        if ending == "lose_power":
            world.lose_power(Random(life))
        else:
            getattr(world, ending)()
        client = world.connect()
        before, epoch = epoch, leader_epoch(client, "safe")
        assert epoch == before + (ending != "restart")
        assert read_all(client, "safe") == written
        assert client.ask(metadata("safe")).topics[0].error_code == ErrorCode.NONE
