"""Every small file of a data directory, under every kind of damage: what the node does is written down, cell by cell.

Whatever it does, nothing that was acknowledged is lost: it is served, or it is still on the disk and an error line says
where. A refusal is a sentence, without the words of Python, and changes nothing.

    S  starts, and serves everything
    O  starts; the partition is offline and says why; everything else is served
    K  starts; the directory is kept under another name and told as an error; everything else is served
    R  refuses to start, in a sentence

A dash: see test_kept.py. Two letters: after a clean end, and after kill -9.
"""

import errno
import re
from pathlib import Path
from random import Random

import pytest

from klamm.broker.facts import DirectoryKept, PartitionFailed
from klamm.errors import ErrorCode
from klamm.log.files import DiskFailed
from klamm.log.recovery import LogDamaged
from klamm.node.identity import WrongDirectory
from klamm.quorum.election import UnreadableElection
from klamm.quorum.journal import UnreadableMetadata
from klamm.runtime.files import RealFiles
from tests.node.requests import NAMED, create, delete_records, fetch, fetched, read_all, send
from tests.node.world import World

REFUSALS = (DiskFailed, LogDamaged, UnreadableElection, UnreadableMetadata, WrongDirectory)
COUNT = 30
MANY_LINES = 10**5
"""Of ten million the size is looked at before anything is read; see test_small_files.py."""

DAMAGES = ["missing", "empty", "cut", "random", "bit", "huge", "directory", "link", "unreadable"]

TABLE = {
    #                                        miss  empt  cut   rand  bit   huge  dire  link  unre
    "meta.properties":                      "R     R     R     R     R     R     R     S     R",
    "broker-life":                          "S     S     S     S     S     S     S     S     S",
    ".kafka_cleanshutdown":                 "S     S     S     S     S     S     S     S     S",
    "recovery-point-offset-checkpoint":     "S     S     S     S     S     S     S     S     S",
    "log-start-offset-checkpoint":          "S     S     S     S     S     S     S     S     S",
    "replication-offset-checkpoint":        "S     S     S     S     S     S     S     S     S",
    "cleaner-offset-checkpoint":            "S     S     S     S     S     S     S     S     S",
    "orders-0/partition.metadata":          "S     S     S     S     S     S     O     S     O",
    "orders-0/leader-epoch-checkpoint":     "S     S     S     S     S     S     S/O   S     S",
    "orders-0/*.log":                       "-     -     -     -     -     -     -     O     O",
    "orders-0/*.index":                     "S     S     S     S     S     S     O     S     O",
    "orders-0/*.timeindex":                 "S     S     S     S     S     S     O     S     O",
    "orders-0/*.snapshot":                  "S     S     S     S     S     S     O     S     S",
    "__cluster_metadata-0/quorum-state":    "S     R     R     R     R     R     R     S     R",
    "__cluster_metadata-0/*.checkpoint":    "S     S     S     S     S     S     R     S     R",
}  # fmt: skip
ONLY_OF_CLEAN = (".kafka_cleanshutdown", "cleaner-offset-checkpoint")
"""Files that a node which was killed need not have."""
CELLS = [
    (name, damage, verdict)
    for name, row in TABLE.items()
    for damage, verdict in zip(DAMAGES, row.split(), strict=True)
    if verdict != "-"
]


def value(number: int) -> bytes:
    return b"<%d>" % number + b"." * 60


VALUES = [value(number) for number in range(COUNT)]


class Unreadable(RealFiles):
    """Root may read everything, so one file cannot be read by decree, until another one has its name."""

    def __init__(self, root: Path, path: Path | None) -> None:
        super().__init__(root)
        opened_for = self.descriptors.opened_for
        # (Held open, so that no other file gets its number.)
        self._held = path.open("rb") if path is not None else None
        self._locked = path.stat().st_ino if path is not None else None

        def refusing(full_path: str, *arguments: int) -> int:
            if self._is_locked(Path(full_path)):
                raise PermissionError(errno.EACCES, "Permission denied")
            return opened_for(full_path, *arguments)

        self.descriptors.opened_for = refusing  # type: ignore[method-assign]

    def _is_locked(self, path: Path) -> bool:
        return self._locked is not None and path.exists() and path.stat().st_ino == self._locked

    def read_whole(self, path: str) -> bytes:
        if self._is_locked(self.root / path):
            raise DiskFailed(f"{path}: Permission denied", errno.EACCES)
        return super().read_whole(path)


def written(root: Path, *, clean: bool) -> World:
    """Two topics in small segments, snapshots of the metadata, a beginning that was deleted, a compacted topic."""
    world = World(RealFiles(root), metadata_log_max_record_bytes_between_snapshots="1000")
    client = world.connect()
    for topic in ("orders", "others"):
        create(client, topic, internal_segment_bytes="1000", index_interval_bytes="100")
        for number in range(COUNT):
            send(client, topic, value(number))
    create(client, "trimmed")
    send(client, "trimmed", b"gone")
    send(client, "trimmed", b"stays")
    client.ask(delete_records("trimmed", before=1))
    for number in range(12):
        create(client, f"topic-{number}")
    world.advance(200_000.0)
    if clean:
        world.stop()
    assert isinstance(world.files, RealFiles)
    world.files.close()
    return world


def damage(path: Path, how: str) -> None:
    """In the way of its kind; a link leads to what was there."""
    content = path.read_bytes()
    if how == "unreadable":
        return
    if how == "link":
        elsewhere = path.with_name(f"elsewhere-{path.name}")
        path.rename(path.parent.parent / elsewhere.name)
        path.symlink_to(path.parent.parent / elsewhere.name)
        return
    path.unlink()
    bit = bytearray(content)
    if bit:
        bit[len(bit) // 2] ^= 0x10
    if how == "directory":
        path.mkdir()
    elif how != "missing":
        damaged = {
            "empty": b"",
            "cut": content[: len(content) // 2],
            "random": Random(5).randbytes(200),
            "bit": bytes(bit),
            "huge": b"0\n" + b"%d\n" % MANY_LINES + b"1 2\n" * MANY_LINES,
        }
        path.write_bytes(damaged[how])


def damaged_path(root: Path, name: str) -> Path | None:
    found = sorted(root.glob(name))
    return found[-1] if found else None


def values_on_disk(root: Path) -> set[bytes]:
    content = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file() and "orders-0" in str(path))
    return {each for each in VALUES if each in content}


OF_PYTHON = re.compile(
    r"Errno|Traceback|codec|Expecting|literal|NoneType|KeyError|Error:|object|int\(|json|<class|JSON|struct"
)


def verdict(world: World, root: Path, path: Path | None) -> str:
    world.files = Unreadable(root, path)
    told = len(world.told)
    try:
        world.start_again()
    except REFUSALS as refusal:
        assert not OF_PYTHON.search(str(refusal)), str(refusal)
        return "R"
    for _ in range(3):
        world.advance(20_000.0)
    for fact in world.told[told:]:
        assert not OF_PYTHON.search(str(fact)), str(fact)
    client = world.connect()
    assert read_all(client, "others") == VALUES
    # (Where it begins only a checkpoint says.)
    assert read_all(client, "trimmed") in ([b"stays"], [b"gone", b"stays"])
    if world.told_of(DirectoryKept):
        return "K"
    if fetched(client.ask(fetch("orders"), NAMED)).error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        assert {fact.partition for fact in world.told_of(PartitionFailed)} == {"orders-0"}
        return "O"
    assert read_all(client, "orders") == VALUES
    send(client, "orders", b"next")
    return "S"


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize(("name", "how", "expected"), CELLS, ids=[f"{name}-{how}" for name, how, _ in CELLS])
def test_a_cell(tmp_path: Path, name: str, how: str, expected: str, clean: bool) -> None:
    root = tmp_path / "data"
    root.mkdir()
    world = written(root, clean=clean)
    path = damaged_path(root, name)
    if path is None:
        assert name in ONLY_OF_CLEAN and not clean, f"nothing is called {name}"
        return
    damage(path, how)
    found = verdict(world, root, path if how == "unreadable" else None)
    assert values_on_disk(root) == set(VALUES), "nothing was removed"
    assert found == expected.split("/")[0 if clean else -1]


def test_a_segment_that_leads_to_another_partitions_harms_nobody_else(tmp_path: Path) -> None:
    """Both would be cut and appended to, each by its own ideas."""
    root = tmp_path / "data"
    root.mkdir()
    world = written(root, clean=False)
    mine, other = (max((root / name).glob("*.log")) for name in ("orders-0", "others-0"))
    content = other.read_bytes()
    mine.unlink()
    mine.symlink_to(other)
    assert verdict(world, root, None) == "O"
    assert other.read_bytes() == content
    [offline] = {str(fact) for fact in world.told_of(PartitionFailed)}
    assert "must not be a symbolic link" in offline
