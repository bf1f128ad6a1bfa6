"""What was acknowledged and may be needed is never removed by the node itself, whatever is damaged when it starts.

A node alone, killed, stopped or without power; its data young (nothing checkpointed) or old (segments rolled, flushed
and checkpointed). Both reproductions of an attack are here: 200 random bytes in `partition.metadata`, and one flipped
byte in the middle of the metadata log, made a node remove directories of topics within eight seconds.
"""

from random import Random

import pytest

from klamm.broker.directories import alike
from klamm.broker.facts import (
    DirectoriesKept,
    DirectoryKept,
    NameMended,
    PartitionFailed,
    RecordsMissing,
    StrayDirectory,
)
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.log.recovery import FlushedRecordsMissing, LogDamaged
from klamm.log.salvage import RecordsSetAside, TailCut
from klamm.quorum.journal import UnreadableMetadata
from klamm.records.batch import batches
from tests.node.requests import NAMED, create, delete, fetch, fetched, offsets, read_all, send
from tests.node.world import World

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"
FIRST_SEGMENT = "00000000000000000000.log"
COUNT = 40
CHECKPOINTED_MS = 120_000.0
LATER_MS = 60_000.0
"""What is removed is removed within seconds."""


def value(number: int) -> bytes:
    return b"<%d>" % number + b"." * 50


def written(*, old: bool) -> World:
    world = World()
    client = world.connect()
    for topic in ("orders", "others"):
        create(client, topic, **({"internal_segment_bytes": "1000"} if old else {}))
        for number in range(COUNT):
            send(client, topic, value(number))
    if old:
        world.advance(CHECKPOINTED_MS)
    return world


def end(world: World, how: str) -> None:
    """Killed: what was written is there. Without power: nothing was lost, but nobody can know."""
    if how == "stopped":
        world.stop()
    elif how == "power":
        for inode in world.disk.names.values():
            inode.flush()
        world.disk.flush([])
        world.disk.crash(Random(1))


def values_on_disk(world: World, topic: str = "orders") -> set[bytes]:
    """All that can still be found by somebody who looks for it."""
    content = b"".join(
        bytes(inode.content) for name, inode in world.disk.names.items() if name.startswith(f"{topic}-0")
    )
    return {value(number) for number in range(COUNT) if value(number) in content}


def replace(world: World, path: str, content: bytes) -> None:
    world.disk.names[path].replace(bytearray(content))


def flip(world: World, path: str, position: int) -> None:
    content = bytearray(world.disk.names[path].content)
    content[position] ^= 0x10
    replace(world, path, bytes(content))


ENDS = ["killed", "stopped", "power"]
DAMAGES = ["random", "empty", "half", "gone", "one bit", "one character"]


def damage_name(world: World, damage: str) -> None:
    path = "orders-0/partition.metadata"
    content = bytes(world.disk.names[path].content)
    if damage == "gone":
        world.disk.remove(path)
        return
    one_character = content[:-6] + (b"B" if content[-6:-5] == b"A" else b"A") + content[-5:]
    damaged = {
        "random": Random(7).randbytes(200),
        "empty": b"",
        "half": content[: len(content) // 2],
        "one bit": content[:4] + bytes([content[4] ^ 1]) + content[5:],
        "one character": one_character,
    }
    replace(world, path, damaged[damage])


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_a_directory_that_cannot_say_whose_it_is(damage: str, how: str, old: bool) -> None:
    world = written(old=old)
    end(world, how)
    damage_name(world, damage)
    for _ in range(2):
        world.start_again()
        world.advance(LATER_MS)
        assert values_on_disk(world) == {value(number) for number in range(COUNT)}, "all is there"
        client = world.connect()
        assert read_all(client, "others") == [value(number) for number in range(COUNT)]
        if world.told_of(NameMended):
            assert read_all(client, "orders") == [value(number) for number in range(COUNT)]
        elif how == "power":
            kept = world.told_of(DirectoryKept)
            assert [fact.directory for fact in kept] == ["orders-0"]
            assert f"{kept[0].kept_as}/{FIRST_SEGMENT}" in world.disk.names
            assert str(kept[0]).count(kept[0].kept_as) == 1 and kept[0].level == "error"
        else:
            assert fetched(client.ask(fetch("orders"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert {fact.partition for fact in world.told_of(PartitionFailed)} == {"orders-0"}
        assert not world.told_of(StrayDirectory)
    if how == "power" and world.told_of(DirectoryKept):
        assert world.told_of(DirectoriesKept), "told at every start"


def test_a_damaged_id_is_told_from_another_topics() -> None:
    random = Random(3)
    for _ in range(1_000):
        one = random.randbytes(16)
        assert not alike(one, random.randbytes(16))
        damaged = bytearray(one)
        damaged[random.randrange(16)] ^= 1 << random.randrange(8)
        assert alike(one, bytes(damaged))


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_topic_that_was_deleted_is_removed(how: str) -> None:
    """Known to be: its directory names it, and the metadata does not."""
    world = written(old=False)
    end(world, "killed")
    before = {name: bytes(inode.content) for name, inode in world.disk.names.items()}
    delete(world.connect(), "orders")
    world.advance(LATER_MS)
    assert not values_on_disk(world)
    world.disk.make_directory("orders-0")
    for name, content in before.items():
        if name.startswith("orders-0/") and not name.endswith("/"):
            world.disk.write_whole(name, content)
    end(world, how)
    world.start_again()
    world.advance(LATER_MS)
    assert world.told_of(StrayDirectory) and not world.told_of(DirectoryKept)
    assert not values_on_disk(world)


def test_a_deleted_topics_directory_under_the_name_of_a_new_one_is_removed() -> None:
    world = written(old=False)
    before = {name: bytes(inode.content) for name, inode in world.disk.names.items()}
    client = world.connect()
    delete(client, "orders")
    world.advance(LATER_MS)
    create(client, "orders")
    world.disk.make_directory("orders-0")
    for name, content in before.items():
        if name.startswith("orders-0/") and not name.endswith("/"):
            world.disk.write_whole(name, content)
    world.start_again()
    world.advance(LATER_MS)
    assert offsets(world.connect(), "orders") == (0, 0)
    assert not values_on_disk(world) and not world.told_of(DirectoryKept)


# The metadata log.


def batch_starts(world: World) -> list[int]:
    return [position for position, _ in batches(memoryview(bytes(world.disk.names[METADATA_LOG].content)))]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_a_metadata_log_with_whole_batches_behind_a_bad_one_is_not_cut(how: str, old: bool) -> None:
    """Only where the power was lost, and nothing tells that the batch had been flushed, may it be a lost write."""
    for number in range(len(batch_starts(written(old=old))) - 1):
        world = written(old=old)
        end(world, how)
        flip(world, METADATA_LOG, batch_starts(world)[number] + 70)
        before = {name: bytes(inode.content) for name, inode in world.disk.names.items()}
        if how == "power" and not old:
            world.start_again()
            world.advance(LATER_MS)
            assert world.told_of(RecordsSetAside)
            check_kept(world)
            continue
        with pytest.raises((LogDamaged, UnreadableMetadata)):
            world.start_again()
        after = {name: bytes(inode.content) for name, inode in world.disk.names.items()}
        check_untouched(before, after)


def check_untouched(before: dict[str, bytes], after: dict[str, bytes]) -> None:
    for name, content in before.items():
        # The note of a clean end speaks of one end, and indexes are made again.
        if not name.endswith(("index", ".kafka_cleanshutdown")):
            assert after.get(name) == content, name


def check_kept(world: World) -> None:
    for topic in ("orders", "others"):
        assert values_on_disk(world, topic) == {value(number) for number in range(COUNT)}
    assert not world.told_of(StrayDirectory)


@pytest.mark.parametrize("how", ENDS)
def test_what_was_flushed_of_the_metadata_log_must_be_there(how: str) -> None:
    """Cut between two batches nothing is damaged; but the checkpoint tells what had been flushed."""
    world = written(old=True)
    end(world, how)
    starts = batch_starts(world)
    replace(world, METADATA_LOG, bytes(world.disk.names[METADATA_LOG].content[: starts[-2]]))
    with pytest.raises(LogDamaged, match="had been flushed"):
        world.start_again()


def test_the_last_batch_of_the_metadata_is_not_a_torn_one_while_the_machine_is_up() -> None:
    world = written(old=False)
    flip(world, METADATA_LOG, batch_starts(world)[-1] + 70)
    with pytest.raises(LogDamaged, match="had been written as a whole"):
        world.start_again()


@pytest.mark.parametrize("how", ["killed", "power"])
def test_a_torn_end_of_the_metadata_costs_no_directory(how: str) -> None:
    """It looks as if the last record had never been acknowledged. But a directory names the topic that it made."""
    world = World()
    client = world.connect()
    create(client, "orders")
    send(client, "orders", value(0))
    end(world, how)
    content = bytes(world.disk.names[METADATA_LOG].content)
    last = batch_starts(world)[-1]
    replace(world, METADATA_LOG, content[: last + 80])
    world.start_again()
    world.advance(LATER_MS)
    assert world.told_of(TailCut)
    assert [fact.directory for fact in world.told_of(DirectoryKept)] == ["orders-0"]
    assert value(0) in values_on_disk(world)


@pytest.mark.parametrize("how", ENDS)
def test_a_metadata_log_that_is_gone(how: str) -> None:
    world = written(old=True)
    end(world, how)
    for name in [name for name in world.disk.names if name.startswith("__cluster_metadata-0/")]:
        if not name.endswith("quorum-state"):
            del world.disk.names[name]
    with pytest.raises((LogDamaged, UnreadableMetadata)):
        world.start_again()
    check_kept(world)


# Logs of partitions.


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
@pytest.mark.parametrize("which", [0, -1], ids=["first segment", "last segment"])
def test_damage_in_the_middle_of_a_log(how: str, old: bool, which: int) -> None:
    """Records behind it stay in the log, or in a file beside it that an error line names."""
    world = written(old=old)
    end(world, how)
    path = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))[which]
    found = [position for position, _ in batches(memoryview(bytes(world.disk.names[path].content)))]
    damaged = found[1] if len(found) > 2 else found[0]
    flip(world, path, damaged + 75)
    world.start_again()
    world.advance(LATER_MS)
    lost = {value(number) for number in range(COUNT)} - values_on_disk(world)
    assert len(lost) <= 1, "but for the one that was damaged"
    aside = world.told_of(RecordsSetAside)
    for fact in aside:
        assert all(f"orders-0/{name}" in world.disk.names for name in fact.kept) and fact.level == "error"
    client = world.connect()
    served = fetched(client.ask(fetch("orders"), NAMED))
    if how == "killed" and not old:
        assert served.error_code == ErrorCode.KAFKA_STORAGE_ERROR and not aside, "nobody else has them"
    assert read_all(client, "others") == [value(number) for number in range(COUNT)]
    if served.error_code == ErrorCode.NONE and not aside and not lost:
        assert offsets(client, "orders")[1] == COUNT


def test_what_was_set_aside_goes_with_its_topic() -> None:
    world = written(old=False)
    end(world, "power")
    flip(world, f"orders-0/{FIRST_SEGMENT}", 200)
    world.start_again()
    assert world.told_of(RecordsSetAside)
    delete(world.connect(), "orders")
    world.advance(LATER_MS)
    assert not [name for name in world.disk.names if name.startswith("orders-0")]


@pytest.mark.parametrize("how", ENDS)
def test_missing_records_are_told(how: str) -> None:
    """Directories, all segments, the last segment: a node that had them says that they are missing."""
    for gone in ("orders-0/", "orders-0/0", "last"):
        world = written(old=True)
        end(world, how)
        prefix = max(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))
        for name in [name for name in world.disk.names if name.startswith(prefix if gone == "last" else gone)]:
            world.disk.change_name(("remove", name, None))
        world.start_again()
        world.advance(LATER_MS)
        missing = [fact for fact in world.told_of(RecordsMissing) if fact.partition == "orders-0"]
        offline = [fact for fact in world.told_of(PartitionFailed) if fact.partition == "orders-0"]
        assert len(missing) + len(offline) == 1, (gone, how)
        assert "no other broker" in str((missing or offline)[0])
        assert read_all(world.connect(), "others") == [value(number) for number in range(COUNT)]


def test_nothing_is_told_to_be_missing_of_a_topic_that_is_another() -> None:
    """A checkpoint still tells of an earlier topic of that name, whose directory is there."""
    world = written(old=True)
    world.stop()
    replace(world, "others-0/partition.metadata", checkpoint.partition_metadata_text(b"another topic's!"))
    world.start_again()
    assert not world.told_of(RecordsMissing)
    assert offsets(world.connect(), "others") == (0, 0)
    assert TopicPartition("others", 0) in [each.topic_partition for each in world.broker.partitions]


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("which", ["first", "middle"])
def test_a_segment_that_is_missing_is_told(how: str, which: str) -> None:
    """Nobody reads older segments at a start; but where one began, a snapshot was taken."""
    world = written(old=True)
    end(world, how)
    found = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))
    assert len(found) > 3
    gone = found[0 if which == "first" else 2]
    world.disk.change_name(("remove", gone, None))
    world.start_again()
    told = [fact for fact in world.told if fact.level == "error" and "orders-0" in str(fact)]
    if which == "middle":
        client = world.connect()
        assert fetched(client.ask(fetch("orders"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert told and "missing" in str(told[0])
        others = set(found) - {gone}
        assert others <= set(world.disk.names), "what is behind it stays"
    elif how == "stopped":
        assert [type(fact) for fact in told] == [FlushedRecordsMissing]
