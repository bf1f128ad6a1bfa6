"""What `klamm storage` finds in a directory, and that a repair loses what is damaged and nothing else."""

from collections.abc import Callable
from random import Random

import pytest

from klamm.errors import ErrorCode
from klamm.log import checkpoint
from klamm.log.recovery import LogDamaged
from klamm.node.identity import WrongDirectory
from klamm.node.inspection import Inspection
from klamm.node.repairs import Wish, inspect
from klamm.quorum.election import UnreadableElection
from klamm.records.batch import batches
from tests.node.requests import NAMED, create, fetch, fetched, metadata, offsets, read_all, send
from tests.node.test_kept import COUNT, METADATA_LOG, batch_starts, damage_name, end, flip, replace, value, written
from tests.node.world import World

VALUES = [value(number) for number in range(COUNT)]


def looked_at(world: World, **wish: object) -> Inspection:
    return inspect(world.disk, Random(1), Wish(**wish))  # type: ignore[arg-type]


def repaired(world: World, **wish: object) -> Inspection:
    """All that can be, and nothing is damaged any more."""
    before = looked_at(world, **wish)
    repairs = {each.repair.what: each.repair for each in before.findings if each.is_harmful and each.repair}
    for repair in repairs.values():
        repair.do()
    return before


def harmful(seen: Inspection) -> list[str]:
    return [each.path for each in seen.findings if each.is_harmful]


def content(world: World) -> dict[str, bytes]:
    return {name: bytes(inode.content) for name, inode in world.disk.names.items()}


@pytest.mark.parametrize("how", ["killed", "stopped", "power"])
@pytest.mark.parametrize("old", [False, True])
def test_nothing_is_wrong_with_a_directory_in_order(how: str, old: bool) -> None:
    world = written(old=old)
    end(world, how)
    before = content(world)
    seen = looked_at(world)
    assert not harmful(seen) and seen.batches > 2 * COUNT and seen.is_alone
    assert content(world) == before, "looking changes nothing"


@pytest.mark.parametrize("damage", ["random", "empty", "half", "gone", "one bit", "one character"])
def test_a_name_is_written_again(damage: str) -> None:
    world = written(old=False)
    damage_name(world, damage)
    assert harmful(looked_at(world)) == ["orders-0/partition.metadata"]
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()
    assert read_all(world.connect(), "orders") == VALUES


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("number", [0, 1, 7, -1])
def test_a_log_is_mended_and_loses_one_batch(old: bool, number: int) -> None:
    world = written(old=old)
    path = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))[0]
    found = batches(memoryview(bytes(world.disk.names[path].content)))
    position, batch = list(found)[number]
    flip(world, path, position + 75)
    lost = batch.base_offset
    is_last = lost == COUNT - 1
    world.start_again()
    if not is_last and not old:
        assert fetched(world.connect().ask(fetch("orders"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.stop()
    before = looked_at(world)
    if is_last:
        return
    assert set(harmful(before)) == {"orders-0"}
    assert {each.offsets for each in before.findings if each.is_harmful} == {(lost, lost + 1)}
    repaired(world)
    assert not harmful(looked_at(world))
    for _ in range(2):
        world.start_again()
        client = world.connect()
        assert read_all(client, "orders") == VALUES[:lost] + VALUES[lost + 1 :]
        assert offsets(client, "orders") == (0, COUNT)
    assert send(client, "orders", b"next") == COUNT
    assert [name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".cut")]


def test_a_missing_segment_is_bridged() -> None:
    world = written(old=True)
    found = sorted(name for name in world.disk.names if name.startswith("orders-0/") and name.endswith(".log"))
    first, after = (int(name[-24:-4]) for name in found[2:4])
    world.disk.remove(found[2])
    assert {each.offsets for each in looked_at(world).findings if each.is_harmful} == {(first, after)}
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()
    assert read_all(world.connect(), "orders") == VALUES[:first] + VALUES[after:]


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("old", [False, True])
def test_a_metadata_log_is_mended_and_loses_no_topic_that_it_knows(how: str, old: bool) -> None:
    """Whatever batch is damaged: the node starts again, and serves every topic whose creation is still there; records
    of the others are kept."""
    for number in range(len(batch_starts(written(old=old)))):
        world = written(old=old)
        end(world, how)
        flip(world, METADATA_LOG, batch_starts(world)[number] + 70)
        if number == 0:
            seen = repaired(world)
            assert harmful(looked_at(world)), "the only batch that names the voters: are there others?"
            assert "--metadata" in next(each.advice for each in seen.findings if each.is_harmful)
        seen = repaired(world, is_alone=True if number == 0 else None)
        assert set(harmful(seen)) >= {"__cluster_metadata-0"}
        assert not harmful(looked_at(world)), (number, how)
        world.start_again()
        world.advance(60_000.0)
        client = world.connect()
        for topic in ("orders", "others"):
            known = client.ask(metadata(topic)).topics[0].error_code == ErrorCode.NONE
            if known:
                assert read_all(client, topic) == VALUES
            else:
                assert any(name.startswith(f"{topic}-0.") and "-stray/" in name for name in world.disk.names)
        create(client, "new")
        assert send(client, "new", b"x") == 0


def test_a_missing_end_of_the_metadata_is_accepted_on_purpose() -> None:
    world = written(old=True)
    starts = batch_starts(world)
    replace(world, METADATA_LOG, bytes(world.disk.names[METADATA_LOG].content[: starts[-1]]))
    with pytest.raises(LogDamaged):
        world.start_again()
    repaired(world)
    assert not harmful(looked_at(world))
    world.start_again()


@pytest.mark.parametrize("damage", [b"", b"{", None])
def test_a_vote_of_a_node_alone_is_written_again(damage: bytes | None) -> None:
    world = written(old=False)
    path = "__cluster_metadata-0/quorum-state"
    if damage is None:
        world.disk.remove(path)
    else:
        replace(world, path, damage)
        with pytest.raises(UnreadableElection, match="is damaged"):
            world.start_again()
    repaired(world)
    world.start_again()
    assert read_all(world.connect(), "orders") == VALUES


@pytest.mark.parametrize("damage", [b"", b"\xff" * 20, b"cluster.id=", b"node.id=", b"directory.id=", None])
def test_a_lost_identity_is_written_again_from_the_metadata(damage: bytes | None) -> None:
    world = written(old=False)
    before = world.disk.read_whole("meta.properties")
    found = checkpoint.read_meta_properties(before)
    assert found is not None
    if damage is None:
        world.disk.remove("meta.properties")
    else:
        # (Or one value of it: what a start refuses, a check must find.)
        replace(
            world, "meta.properties", before.replace(damage, damage + b"x") if damage and damage in before else damage
        )
    with pytest.raises(WrongDirectory, match="klamm storage repair"):
        world.start_again()
    assert "meta.properties" in harmful(repaired(world)), "nobody said which node of which cluster it is"
    assert not looked_at(world).identity
    repaired(world, node_id=0, cluster_id=found["cluster.id"])
    assert world.disk.read_whole("meta.properties") == before
    world.start_again()
    assert read_all(world.connect(), "orders") == VALUES


def each_damage() -> list[Callable[[World], None]]:
    return [
        lambda world: flip(world, METADATA_LOG, 400),
        lambda world: damage_name(world, "random"),
        lambda world: flip(world, "orders-0/00000000000000000000.log", 400),
    ]


@pytest.mark.parametrize("number", range(3))
def test_a_repair_removes_nothing(number: int) -> None:
    """Every byte of a log that was there is there afterwards, in one file or another."""
    world = written(old=True)
    each_damage()[number](world)
    before = content(world)
    repaired(world)
    after = content(world).values()
    for name, data in before.items():
        if name.endswith(".log"):
            assert data in after, name
