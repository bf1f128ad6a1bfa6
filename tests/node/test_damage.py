"""What a node finds on disk when it starts and cannot believe: each file has its own answer, and none is a guess.

A checkpoint only saves work, so without it more is recovered. Who the directory belongs to, and whom this node voted
for, nobody else knows: then it does not start and says why in a sentence. A log that would have a hole is offline, and
the others serve.
"""

import pytest

from klamm.broker.facts import DamagedCheckpoint, PartitionFailed
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed
from klamm.log.recovery import LogDamaged
from klamm.node.identity import WrongDirectory
from klamm.quorum.election import UnreadableElection
from klamm.quorum.raft import UnreadableMetadata
from klamm.records.batch import InvalidBatch, batches, intact
from klamm.sim.disk import Disk
from tests.node.requests import (
    NAMED,
    acknowledged,
    batch_of,
    create,
    delete_records,
    fetch,
    fetched,
    metadata,
    offsets,
    produce,
    read_all,
    send,
)
from tests.node.world import Client, World

FIRST_SEGMENT = "00000000000000000000.log"


@pytest.fixture
def world() -> World:
    """Two topics, written in small segments, and a node that has been stopped cleanly."""
    world = World()
    client = world.connect()
    for topic in ("orders", "others"):
        create(client, topic, internal_segment_bytes="1000", index_interval_bytes="100")
        for number in range(50):
            send(client, topic, value(number))
    client.ask(delete_records("others", before=5))
    world.stop()
    return world


def value(number: int) -> bytes:
    return b"%d" % number + b"." * 50


def check_all_there(world: World, *topics: str) -> Client:
    client = world.connect()
    for topic in topics:
        assert read_all(client, topic)[-45:] == [value(number) for number in range(5, 50)]
        assert send(client, topic, b"next") == 50
    return client


def flip(world: World, path: str, position: int) -> None:
    inode = world.disk.names[path]
    inode.content[position] ^= 0x55
    inode.flush()


def segments(world: World, topic: str = "orders") -> list[str]:
    return sorted(name for name in world.disk.names if name.startswith(f"{topic}-0/") and name.endswith(".log"))


# Whose directory.


def test_a_directory_of_another_node() -> None:
    world = World()
    world.stop()
    with pytest.raises(WrongDirectory, match="belongs to node 0, and this is node 7"):
        World(world.files, node_id=7)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\x00garbage",
        b"version=1\n",
        b"version=1\ncluster.id=abc\nnode.id=0\n",
        b"version=1\ncluster.id=abc\nnode.id=zero\ndirectory.id=Yh5BsRkVTPuKM2ODUEZYcw\n",
        b"version=1\ncluster.id=abc\nnode.id=0\ndirectory.id=short\n",
        b"version=1\ncluster.id=abc\nnode.id=0\ndirectory.id=!!!!\n",
    ],
    ids=["empty", "garbage", "half", "without-directory", "no-number", "short-directory", "strange-directory"],
)
def test_a_damaged_meta_properties(world: World, content: bytes) -> None:
    world.disk.write_whole("meta.properties", content)
    with pytest.raises(WrongDirectory):
        world.start_again()
    assert world.disk.read_whole("meta.properties") == content, "nothing is put in its place"


@pytest.mark.parametrize("name", ["node-0/meta.properties", "backup-2024/thesis.tex"])
def test_a_directory_of_somebody_who_is_no_node(name: str) -> None:
    """A node would take logs that are called so for partitions of topics that are gone, and remove them."""
    disk = Disk()
    disk.make_directory(name.partition("/")[0])
    disk.write_whole(name, b"mine")
    with pytest.raises(WrongDirectory, match=f"no node's .* holds {name.partition('/')[0]}, .* removes"):
        World(disk)
    assert list(disk.names) == [f"{name.partition('/')[0]}/", name] and disk.read_whole(name) == b"mine"


@pytest.mark.parametrize("name", ["lost+found/1", "to-delete/thesis.tex", "one-\N{SUPERSCRIPT TWO}/thesis.tex"])
def test_a_directory_with_something_else_in_it(name: str) -> None:
    disk = Disk()
    disk.make_directory(name.partition("/")[0])
    disk.write_whole(name, b"mine")
    World(disk).stop()
    assert disk.read_whole(name) == b"mine"


@pytest.mark.parametrize(("entry", "is_ours"), [("orders-0", True), ("backup-2024", False)])
def test_a_directory_that_cannot_be_looked_into_costs_nobody_else(world: World, entry: str, is_ours: bool) -> None:
    world.disk.make_directory(entry)
    listing = world.disk.listing

    def fails(path: str) -> list[str]:
        if path == entry:
            raise DiskFailed(f"{path}: input/output error", 5)
        return listing(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.disk, "listing", fails)
        world.start_again()
        check_all_there(world, "others", *(() if is_ours else ("orders",)))
        offline = [fact.partition for fact in world.told_of(PartitionFailed)]
        assert offline == (["orders-0"] if is_ours else [])
    assert any(name.startswith(f"{entry}/") for name in world.disk.names), "and nothing is removed"


# The quorum.


@pytest.mark.parametrize("content", [b"", b"{", b'{"leaderId":0}', b"\xff", b"[]", b'{"data_version":99}'])
def test_a_damaged_vote_is_not_replaced_by_a_guess(world: World, content: bytes) -> None:
    world.disk.write_whole("__cluster_metadata-0/quorum-state", content)
    with pytest.raises(UnreadableElection, match="quorum-state"):
        world.start_again()


def test_a_damaged_batch_of_committed_metadata(world: World) -> None:
    """Guessing would lose topics. After a clean shutdown the log is not recovered, but its batches are checked."""
    flip(world, f"__cluster_metadata-0/{FIRST_SEGMENT}", 400)
    with pytest.raises((UnreadableMetadata, LogDamaged), match="__cluster_metadata-0"):
        world.start_again()


def test_a_damaged_batch_of_committed_metadata_after_a_crash(world: World) -> None:
    """It was flushed, and whole batches follow it: cutting it off would lose what was promised."""
    world.disk.remove(".kafka_cleanshutdown")
    flip(world, f"__cluster_metadata-0/{FIRST_SEGMENT}", 400)
    with pytest.raises((UnreadableMetadata, LogDamaged), match="__cluster_metadata-0"):
        world.start_again()


def test_a_torn_end_of_the_metadata_log_is_cut(world: World) -> None:
    """It was never committed: the metadata log is flushed before anybody hears of what is in it."""
    world.disk.remove(".kafka_cleanshutdown")
    inode = world.disk.names[f"__cluster_metadata-0/{FIRST_SEGMENT}"]
    inode.content += b"\x00\x00\x00\x00\x00\x00\x00\xff\x00\x00\x01\x00torn"
    inode.flush()
    world.start_again()
    check_all_there(world, "orders", "others")


# Checkpoints.

CHECKPOINTS = [
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
]


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("content", [b"", b"0\n5\n", b"0\n1\norders 0 x\n", b"\xff\x00", b"1\n0\n"])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_damaged_checkpoint_costs_work_and_nothing_else(world: World, name: str, content: bytes, clean: bool) -> None:
    world.disk.write_whole(name, content)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_all_there(world, "orders", "others")
    if name != "replication-offset-checkpoint":
        assert name in {fact.name for fact in world.told_of(DamagedCheckpoint)}


def test_a_checkpoint_of_negative_or_absurd_offsets(world: World) -> None:
    world.disk.write_whole("recovery-point-offset-checkpoint", b"0\n2\norders 0 -5\nothers 0 99999999\n")
    world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_all_there(world, "orders", "others")


@pytest.mark.parametrize("content", [b"", b"0\n9\n", b"\xff", b"0\n1\n7 3\n"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_a_damaged_epoch_checkpoint(world: World, content: bytes, clean: bool) -> None:
    """The batches carry their epochs."""
    world.disk.write_whole("orders-0/leader-epoch-checkpoint", content)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_all_there(world, "orders", "others")
    assert world.partition("orders").log.epochs.epoch_at(10) == 0


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"\xff"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_a_damaged_partition_metadata(world: World, content: bytes, clean: bool) -> None:
    """The directory has the right name, the metadata log knows of no other, and what is in it was flushed."""
    world.disk.write_whole("orders-0/partition.metadata", content)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_all_there(world, "orders", "others")


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_nobody_is_served_from_a_directory_that_does_not_say_whose_it_is(world: World, clean: bool) -> None:
    """It says so in a file that cannot be read, and may be another topic's. Its log could be, and once was served."""
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    name = "others-0/partition.metadata"
    world.disk.failure = lambda call, path: DiskFailed(f"{path}: Input/output error", 5) if path == name else None
    world.start_again()
    client = check_all_there(world, "orders")
    assert fetched(client.ask(fetch("others", 5), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["others-0"]
    world.disk.failure = None
    world.restart()
    assert offsets(check_all_there(world, "others"), "others") == (5, 51), "what was deleted stays so"


@pytest.mark.parametrize("ending", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("damage", ["gone", "empty", "garbage", "zeros"])
def test_damaged_indexes_and_snapshots_are_made_again(world: World, ending: str, clean: bool, damage: str) -> None:
    """All of them at once."""
    for name in [name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(ending)]:
        size = len(world.disk.names[name].content)
        if damage == "gone":
            world.disk.remove(name)
        else:
            content = {"empty": b"", "garbage": b"\xa5" * (size + 3), "zeros": bytes(size)}[damage]
            world.disk.write_whole(name, content)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    client = check_all_there(world, "orders", "others")
    for number in range(0, 50, 7):
        assert fetched(client.ask(fetch("orders", number), NAMED)).error_code == ErrorCode.NONE


# Segments.


def test_a_hole_takes_its_partition_offline_and_nothing_else(world: World) -> None:
    """A flushed batch is damaged, and a whole one follows. Neither is the broker down, nor are bad bytes served, nor
    good ones thrown away."""
    path = segments(world)[-1]
    flip(world, path, 100)
    world.disk.remove(".kafka_cleanshutdown")
    before = bytes(world.disk.names[path].content)
    world.start_again()
    client = check_all_there(world, "others")
    assert fetched(client.ask(fetch("orders", 48), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert acknowledged(client.ask(produce("orders", b"x"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["orders-0"]
    assert bytes(world.disk.names[path].content) == before


def test_a_partition_that_could_not_be_opened_is_there_again_when_its_files_are(world: World) -> None:
    path = segments(world)[-1]
    flip(world, path, 100)
    world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    world.stop()
    flip(world, path, 100)
    world.start_again()
    check_all_there(world, "orders", "others")


def test_an_unreadable_segment_takes_its_partition_offline_and_nothing_else(world: World) -> None:
    path = segments(world)[-1]
    world.disk.failure = lambda call, of: DiskFailed(f"{of}: Input/output error") if of == path else None
    world.start_again()
    client = check_all_there(world, "others")
    assert fetched(client.ask(fetch("orders"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert acknowledged(client.ask(produce("orders", b"x"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.ask(metadata("orders")).topics[0].error_code == ErrorCode.NONE
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["orders-0"]


def test_a_torn_end_that_was_never_flushed_is_cut(world: World) -> None:
    world.disk.remove(".kafka_cleanshutdown")
    inode = world.disk.names[segments(world)[-1]]
    inode.content += b"\x00\x00\x00\x00\x00\x00\x00\x32\x00\x00\x01\x00torn"
    inode.flush()
    world.start_again()
    check_all_there(world, "orders", "others")


def test_retention_meets_a_damaged_segment(world: World) -> None:
    """Every five minutes it looks at the oldest segments. One that cannot be read must not bring the broker down."""
    for name in [name for name in world.disk.names if name.startswith("orders-0/") and name.endswith("index")]:
        world.disk.remove(name)
    flip(world, segments(world)[0], 16)
    world.start_again()
    world.advance(20 * 60_000)
    check_all_there(world, "others")


def test_compaction_meets_a_damaged_segment() -> None:
    world = World()
    client = world.connect()
    settings = {"cleanup_policy": "compact", "internal_segment_bytes": "1000", "min_cleanable_dirty_ratio": "0.01"}
    create(client, "table", **settings)
    create(client, "others")
    for number in range(60):
        client.ask(produce("table", batch=batch_of(value(number), keys=[b"key"])), NAMED)
    world.stop()
    for name in [name for name in world.disk.names if name.startswith("table-0/") and name.endswith("index")]:
        world.disk.remove(name)
    flip(world, segments(world, "table")[0], 16)
    world.start_again()
    world.advance(5 * 60_000)
    assert send(world.connect(), "others", b"x") == 0


BATCH_BYTES = 69


@pytest.mark.parametrize("position", range(8, BATCH_BYTES, 6))
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_no_flipped_bit_is_taken_for_a_record(position: int, clean: bool) -> None:
    """F20, I18: in every part of the second of three batches but its base offset. The broker starts; what it serves is
    right, or the consumer sees by the CRC that it is not; and the first batch, which is fine, is not lost."""
    world = three_batches()
    flip(world, f"orders-0/{FIRST_SEGMENT}", BATCH_BYTES + position)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_nothing_wrong_is_served(world.connect())


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("position", [0, 3])
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_no_flipped_bit_of_an_offset_is_believed(batch: int, position: int, clean: bool) -> None:
    """The base offset is outside the CRC. But this log was flushed up to offset 3 and its checkpoint says so: it cannot
    end at some trillion, and record 2 cannot be found there."""
    world = three_batches()
    flip(world, f"orders-0/{FIRST_SEGMENT}", BATCH_BYTES * batch + position)
    if not clean:
        world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    check_nothing_wrong_is_served(world.connect())


def three_batches() -> World:
    world = World()
    client = world.connect()
    create(client, "orders")
    for number in range(3):
        send(client, "orders", b"%d" % number)
    world.stop()
    assert len(world.disk.names[f"orders-0/{FIRST_SEGMENT}"].content) == 3 * BATCH_BYTES
    return world


def check_nothing_wrong_is_served(client: Client) -> None:
    answer = fetched(client.ask(fetch("orders"), NAMED))
    assert answer.high_watermark <= 3
    data = memoryview(bytes(answer.records or b""))
    expected = 0
    for position, batch in batches(data):
        try:
            intact(data[position : position + batch.size_bytes])
        except InvalidBatch:
            return
        assert batch.base_offset == expected
        expected = batch.next_offset


def test_the_end_found_by_recovery_is_where_writing_goes_on(world: World) -> None:
    world.disk.remove(".kafka_cleanshutdown")
    world.start_again()
    client = world.connect()
    assert offsets(client, "orders") == (0, 50)
    assert send(client, "orders", b"next") == 50
