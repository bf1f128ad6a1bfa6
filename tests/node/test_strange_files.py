"""What somebody puts into a node's directory, beside its partitions or into them: nothing of it is ever removed."""

from pathlib import Path

import pytest

from klamm.broker.facts import DirectoriesKept, DirectoryKept, StrangeDirectory, StrangeFiles
from klamm.broker.housekeeping import REMOVAL_INTERVAL_MS
from klamm.log.checkpoint import partition_metadata_text
from klamm.runtime.files import RealFiles
from tests.node.requests import create, delete, send
from tests.node.world import World

FIRST_SEGMENT = "00000000000000000000.log"


def removed(world: World) -> None:
    world.advance(REMOVAL_INTERVAL_MS + 1_000.0)


def theses(directory: Path) -> dict[str, str]:
    """What there is in the directory but for the node's own, with its content."""
    found = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_text() for name, path in found.items() if path.read_bytes().startswith(b"mine")}


@pytest.fixture
def real(tmp_path: Path) -> World:
    return World(RealFiles(tmp_path))


@pytest.mark.parametrize(
    "name", ["backup-2024/thesis.tex", "backup-2024/old.log", "backup-2024/partition.metadata.bak", "dump-2024"]
)
@pytest.mark.parametrize("clean", [True, False])
def test_what_is_only_called_like_a_partition_stays(real: World, tmp_path: Path, name: str, clean: bool) -> None:
    """A node once removed it at its next start."""
    real.files.make_directory("backup-2024")
    real.files.write_whole(name, b"mine")
    if clean:
        real.stop()
    real.start_again()
    removed(real)
    assert theses(tmp_path) == {name: "mine"}
    assert real.told_of(StrangeDirectory)


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint", FIRST_SEGMENT])
def test_what_is_a_partitions_of_a_topic_that_is_gone_does_not(real: World, tmp_path: Path, name: str) -> None:
    """Its partition.metadata names a topic that a record deletes; or there is no record in it."""
    client = real.connect()
    topic_id = create(client, "gone")
    delete(client, "gone")
    real.stop()
    real.files.make_directory("gone-0")
    real.files.write_whole("gone-0/partition.metadata", partition_metadata_text(topic_id))
    real.files.write_whole(f"gone-0/{name}", b"mine")
    real.start_again()
    removed(real)
    assert not theses(tmp_path) and not list(tmp_path.glob("gone*"))


@pytest.mark.parametrize("names", [[FIRST_SEGMENT], [FIRST_SEGMENT, "partition.metadata"]])
def test_records_that_may_be_anybodys_are_kept(real: World, tmp_path: Path, names: list[str]) -> None:
    """Without an intact partition.metadata nobody knows that they were deleted."""
    real.stop()
    real.files.make_directory("gone-0")
    for name in names:
        real.files.write_whole(f"gone-0/{name}", b"mine")
    for _ in range(3):
        real.start_again()
        removed(real)
    [kept] = real.told_of(DirectoryKept)
    assert kept.directory == "gone-0" and kept.kept_as.endswith("-stray")
    assert sorted(theses(tmp_path)) == sorted(f"{kept.kept_as}/{name}" for name in names)
    assert len(real.told_of(DirectoriesKept)) == 2, "each later start tells of it"


@pytest.mark.parametrize("name", ["notes-0", "notes-0/thesis.tex"])
def test_what_stands_in_a_partitions_place_makes_room_and_stays(real: World, tmp_path: Path, name: str) -> None:
    """Again and again."""
    for turn in range(3):
        real.stop()
        if "/" in name:
            real.files.make_directory("notes-0")
        real.files.write_whole(name, b"mine %d" % turn)
        real.start_again()
        client = real.connect()
        create(client, "notes")
        assert send(client, "notes", b"x") == 0
        delete(client, "notes")
        removed(real)
    assert sorted(theses(tmp_path).values()) == ["mine 0", "mine 1", "mine 2"]
    assert not [path for path in tmp_path.glob("notes*/*") if path.name != "thesis.tex"]


@pytest.mark.parametrize("clean", [True, False])
def test_what_lies_where_a_topic_without_records_would_be_stays(real: World, tmp_path: Path, clean: bool) -> None:
    create(real.connect(), "notes")
    if clean:
        real.stop()
    real.files.make_directory("notes-0")
    real.files.write_whole("notes-0/thesis.tex", b"mine")
    real.start_again()
    client = real.connect()
    assert send(client, "notes", b"x") == 0
    delete(client, "notes")
    removed(real)
    assert list(theses(tmp_path).values()) == ["mine"]


@pytest.mark.parametrize("has_records", [True, False])
def test_what_is_put_into_a_partitions_directory_outlives_it(real: World, tmp_path: Path, has_records: bool) -> None:
    client = real.connect()
    create(client, "notes")
    if has_records:
        send(client, "notes", b"x")
    real.files.make_directory("notes-0")
    real.files.write_whole("notes-0/thesis.tex", b"mine")
    send(client, "notes", b"x")
    delete(client, "notes")
    for _ in range(2):
        removed(real)
    (kept,) = theses(tmp_path)
    assert not list((tmp_path / kept).parent.glob("*.log"))
    assert len(real.told_of(StrangeFiles)) == 1
    real.restart()
    removed(real)
    assert list(theses(tmp_path)) == [kept]
