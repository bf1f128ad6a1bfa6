"""Topics come and go: by request and by being spoken of, and under an old name never with old data (I20)."""

import pytest

from klamm.broker.facts import DirectoryStays
from klamm.broker.housekeeping import REMOVAL_INTERVAL_MS
from klamm.errors import ErrorCode
from klamm.ids import ZERO_UUID
from klamm.runtime.files import RealFiles
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
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
    producer_id,
    read_all,
    send,
)
from tests.node.world import Client, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def test_a_created_topic_is_there_when_the_answer_comes(client: Client) -> None:
    topic_id = create(client, "orders", 3)
    (described,) = client.ask(metadata("orders")).topics
    assert described.topic_id == topic_id != ZERO_UUID
    assert [(each.partition_index, each.leader_id, each.leader_epoch) for each in described.partitions] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
    ]


def test_two_wishes_for_one_name_in_one_breath(client: Client) -> None:
    """The controller decides on what is not committed yet, so the second wish is refused before the first is true."""
    client.post(creation("orders"), creation("orders"))
    first, second = client.take(), client.take()
    assert (first.topics[0].error_code, second.topics[0].error_code) == (0, ErrorCode.TOPIC_ALREADY_EXISTS)


def test_a_deleted_topic_is_gone_when_the_answer_comes(client: Client) -> None:
    topic_id = create(client, "orders")
    send(client, "orders", b"x")
    delete(client, "orders")
    assert client.ask(metadata("orders")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_name = acknowledged(client.ask(produce("orders", b"y"), NAMED))
    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_id = acknowledged(client.ask(produce(topic_id, b"y")))
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_made_anew_has_a_new_id_and_no_old_data(client: Client) -> None:
    old_id = create(client, "orders")
    send(client, "orders", b"old")
    delete(client, "orders")
    new_id = create(client, "orders")
    assert new_id != old_id
    assert offsets(client, "orders") == (0, 0)
    assert fetched(client.ask(fetch(old_id))).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert acknowledged(client.ask(produce(old_id, b"late"))).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert client.ask(by_id(old_id)).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert send(client, "orders", b"new") == 0
    assert read_all(client, "orders") == [b"new"]


def by_id(topic_id: bytes) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)])


@pytest.mark.parametrize("ending", ["restart", "kill"])
def test_old_data_stays_gone_after_a_restart(world: World, client: Client, ending: str) -> None:
    create(client, "orders")
    send(client, "orders", b"old")
    delete(client, "orders")
    create(client, "orders")
    send(client, "orders", b"new")
    getattr(world, ending)()
    client = world.connect()
    assert read_all(client, "orders") == [b"new"]


def test_a_topic_deleted_while_nobody_looked_is_set_aside(world: World, client: Client) -> None:
    """A crash between the record of the deletion and the directory: the directory has an id that nobody knows."""
    create(client, "orders")
    send(client, "orders", b"old")
    saved = {name: inode for name, inode in world.disk.names.items() if name.startswith("orders-0/")}
    delete(client, "orders")
    world.advance(10_000)
    world.disk.names |= saved
    world.kill()
    client = world.connect()
    assert client.ask(metadata("orders")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create(client, "orders")
    assert offsets(client, "orders") == (0, 0)
    world.advance(10_000)
    assert [name for name in world.disk.listing("") if "orders" in name] == [], "the new one has no records yet"


def test_the_files_of_a_deleted_topic_go_in_the_background(world: World, client: Client) -> None:
    create(client, "orders", 3)
    for index in range(3):
        send(client, "orders", b"x", index=index)
    delete(client, "orders")
    assert not world.disk.exists("orders-0")
    world.advance(10_000)
    assert not [name for name in world.disk.listing("") if name.startswith("orders")]


@pytest.mark.parametrize("half_removed", [False, True])
def test_files_of_a_deleted_topic_go_also_if_the_node_ends_meanwhile(
    world: World, client: Client, half_removed: bool
) -> None:
    create(client, "orders")
    send(client, "orders", b"x")
    delete(client, "orders")
    if half_removed:
        world.disk.piece_bytes = 30
        while not world.disk.discarded:
            world.wake()
        removal = world.disk.removal(world.disk.discarded[0])
        for _ in range(3):
            next(removal)
    world.disk.end_life()
    world.kill()
    assert [name for name in world.disk.listing("") if name.startswith("orders")], "the start does not wait for it"
    world.advance(10_000)
    assert not [name for name in world.disk.listing("") if name.startswith("orders")]


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "files"])
def test_who_removes_them_by_hand_is_no_trouble(on_disk: bool, real_files: RealFiles) -> None:
    """It was warned of every few seconds, for as long as the node ran."""
    world = World(real_files if on_disk else None)
    client = world.connect()
    create(client, "orders")
    send(client, "orders", b"x")
    delete(client, "orders")
    (set_aside,) = [name for name in world.files.listing("") if name.startswith("orders-0.")]
    for name in world.files.listing(set_aside):
        world.files.remove(f"{set_aside}/{name}")
    if on_disk:
        (real_files.root / set_aside).rmdir()
    else:
        world.disk.remove_directory(set_aside)
    world.advance(2 * REMOVAL_INTERVAL_MS + 1_000.0)
    assert not world.told_of(DirectoryStays)


def test_a_producer_in_the_middle_of_a_deletion_gets_no_acknowledgement(world: World, client: Client) -> None:
    """It hears that the topic is gone, which is the truth; a timeout would make it wait for nothing."""
    create(client, "safe", flush_messages="1")
    world.holds_flushes = True
    writer = world.connect()
    client.post(deletion("safe"))
    writer.post(produce("safe", b"x"), version=NAMED)
    world.flush()
    assert client.take().responses[0].error_code == ErrorCode.NONE
    assert acknowledged(writer.take()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_flush_that_ends_after_its_topic_is_gone_harms_nobody(world: World, client: Client) -> None:
    create(client, "safe", flush_messages="1")
    create(client, "other", flush_messages="1")
    world.holds_flushes = True
    first, second, third = world.connect(), world.connect(), world.connect()
    first.post(deletion("safe"))
    second.post(produce("safe", b"x"), version=NAMED)
    third.post(produce("other", b"y"), version=NAMED)
    world.holds_flushes = False
    world.flush()
    assert acknowledged(third.take()).base_offset == 0
    assert read_all(client, "other") == [b"y"]


def test_sequences_of_an_old_topic_mean_nothing_to_the_new_one(client: Client) -> None:
    create(client, "orders")
    identity = producer_id(client)
    client.ask(produce("orders", batch=batch_of(b"a", b"b", producer=(identity, 0, 0))), NAMED)
    delete(client, "orders")
    create(client, "orders")
    answer = acknowledged(client.ask(produce("orders", batch=batch_of(b"c", producer=(identity, 0, 2))), NAMED))
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_what_checkpoints_said_of_an_old_topic_does_not_touch_the_new_one(world: World, client: Client) -> None:
    """Records were deleted up to 50 and a checkpoint noted it; the topic was made anew and filled; then a crash before
    the next checkpoint. The old beginning must not be taken for the new topic's, nor the old recovery point."""
    create(client, "orders")
    for _ in range(60):
        send(client, "orders", b"old")
    client.ask(delete_records("orders", 50))
    world.advance(61_000)
    assert b"orders 0 50" in world.disk.read_whole("log-start-offset-checkpoint")
    delete(client, "orders")
    create(client, "orders", flush_messages="1")
    for number in range(10):
        send(client, "orders", b"%d" % number)
    world.kill()
    client = world.connect()
    assert offsets(client, "orders") == (0, 10)
    assert read_all(client, "orders") == [b"%d" % number for number in range(10)]


# By being spoken of.


def test_metadata_creates_what_it_speaks_of(client: Client) -> None:
    first = client.ask(metadata("spoken-of", create_missing=True)).topics[0]
    assert first.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
    again = client.ask(metadata("spoken-of")).topics[0]
    assert again.error_code == ErrorCode.NONE and len(again.partitions) == 1
    assert send(client, "spoken-of", b"x") == 0


def test_twice_in_one_breath_creates_once(client: Client) -> None:
    client.post(metadata("twice", create_missing=True), metadata("twice", create_missing=True))
    codes = [client.take().topics[0].error_code for _ in range(2)]
    assert set(codes) <= {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}
    assert client.ask(metadata("twice")).topics[0].error_code == ErrorCode.NONE


def test_not_if_the_client_does_not_want_it(client: Client) -> None:
    client.ask(metadata("unwanted"))
    assert client.ask(metadata("unwanted")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_not_if_the_broker_does_not_want_it() -> None:
    client = World(auto_create_topics_enable="false").connect()
    for _ in range(2):
        answer = client.ask(metadata("unwanted", create_missing=True)).topics[0]
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a" * 250, "a b", "nul\0"])
def test_not_under_a_name_that_cannot_be(client: Client, name: str) -> None:
    for _ in range(2):
        answer = client.ask(metadata(name, create_missing=True)).topics[0]
        assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_with_the_broker_s_defaults() -> None:
    client = World(num_partitions="4").connect()
    client.ask(metadata("spoken-of", create_missing=True))
    assert len(client.ask(metadata("spoken-of")).topics[0].partitions) == 4


def test_produce_alone_creates_nothing(client: Client) -> None:
    answer = acknowledged(client.ask(produce("nowhere", b"x"), NAMED))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.ask(metadata("nowhere")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_names_of_the_greatest_length_live_and_die(real_files: RealFiles) -> None:
    """249 characters, with a partition number and what a deletion adds, on a real file system."""
    world = World(real_files)
    client = world.connect()
    name = "n" * 249
    create(client, name, 11)
    assert send(client, name, b"x", index=10) == 0
    delete(client, name)
    create(client, name, 11)
    assert offsets(client, name, 10) == (0, 0)
    world.advance(10_000)
