"""A disk in memory that forgets, tears, fails and rots.

It keeps every promise of `klamm.log.files` and not one more. When the power is lost, each file keeps what was flushed
and a drawn part of what was appended or cut since, the last write torn, some blocks perhaps never written; names that
changed since the last flush survive as a drawn prefix, in their order. A directory is a name like any other
(`orders-0/`), and renaming it is one change. Every call that changes something is counted, and any one of them can be
made to fail, or to be the last one of this life.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from klamm.ids import Bytes
from klamm.log.files import DiskFailed, DiskFull, File, Space
from klamm.log.names import DELETED

BLOCK_BYTES = 32
"""Much smaller than a real disk's, but no smaller than what a batch's checksum leaves out."""

PLENTY_BYTES = 2**40

Change: TypeAlias = tuple[str, str, "Inode | str | None"]


class Crashed(BaseException):
    """The process, or its machine, ended in the middle of a call. Nobody may catch this but the world."""


class Inode:
    """A file's bytes, the bytes of it that are on disk, and what happened since."""

    __slots__ = ("changes", "content", "durable")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = bytearray()
        self.changes: list[bytes | int] = [content] if content else []

    def append(self, data: bytes) -> None:
        self.content += data
        self.changes.append(data)

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.changes.append(size)

    def flush(self) -> None:
        for change in self.changes:
            _change(self.durable, change)
        self.changes = []

    def crash(self, random: Random) -> None:
        survived = bytearray(self.durable)
        kept = random.randint(0, len(self.changes))
        for change in self.changes[:kept]:
            _change(survived, change)
        if kept < len(self.changes) and isinstance(torn := self.changes[kept], bytes):
            survived += torn[: random.randint(0, len(torn))]
        self._lose_blocks(survived, random)
        self.replace(survived)

    def replace(self, content: bytearray) -> None:
        """This is what is on disk now, whatever was before."""
        self.content = content
        self.durable = bytearray(content)
        self.changes = []

    def _lose_blocks(self, survived: bytearray, random: Random) -> None:
        """The file's size may be on disk before its bytes are."""
        if survived == self.durable:
            return
        changed = (at for at, byte in enumerate(self.durable) if at >= len(survived) or survived[at] != byte)
        start = next(changed, len(self.durable))
        if start < len(survived) and random.random() < 0.3:
            first = random.randrange(start, len(survived))
            last = random.randint(first, len(survived))
            first, last = max(start, first - first % BLOCK_BYTES), min(len(survived), last + -last % BLOCK_BYTES)
            survived[first:last] = bytes(last - first) if random.random() < 0.5 else random.randbytes(last - first)


@dataclass(slots=True)
class Discarded:
    """Files that wait to be removed, and perhaps a directory after them."""

    paths: Sequence[str]
    directory: str | None
    after_ms: int


class MemoryRegion:
    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def __bytes__(self) -> bytes:
        return self._content


class MemoryFile:
    __slots__ = ("_disk", "_inode", "_life", "path", "size")

    def __init__(self, disk: "Disk", path: str) -> None:
        self._disk = disk
        self._life = disk.life
        self.path = path
        self._inode = disk.names.get(path)
        self.size = len(self._inode.content) if self._inode is not None else 0

    def append(self, data: Bytes) -> None:
        self._disk.changing("append", self.path, self._life)
        inode = self.inode
        inode.append(bytes(data))
        self.size = len(inode.content)

    def read(self, position: int, length: int) -> bytes:
        self._disk.reading("read", self.path, self._life)
        assert position >= 0 and length >= 0
        assert self._inode is not None, f"{self.path} is read before it was written"
        return bytes(self._inode.content[position : position + length])

    def truncate(self, size: int) -> None:
        if size != self.size:
            self._disk.changing("truncate", self.path, self._life)
            self.inode.truncate(size)
            self.size = size

    def region(self, position: int, length: int) -> MemoryRegion:
        return MemoryRegion(self.read(position, length))

    def close(self) -> None:
        pass

    def remove(self) -> None:
        self._disk.changing("remove", self.path, self._life)
        self._disk.change_name(("remove", self.path, None))

    def rename(self, new_path: str) -> None:
        self._disk.changing("rename", self.path, self._life)
        self._disk.change_name(("rename", self.path, new_path))
        self.path = new_path

    def flush(self) -> None:
        """One that is gone is left out, unless its directory is gone too: a flush makes no file."""
        self._disk.changing("flush", self.path, self._life)
        if self._inode is not None:
            self._inode.flush()
        else:
            self._disk.check_directory_of(self.path)

    @property
    def inode(self) -> Inode:
        if self._inode is None:
            self._disk.check_directory_of(self.path)
            self._inode = Inode()
            self._disk.change_name(("link", self.path, self._inode))
        return self._inode


class Disk:
    """Implements `Files`."""

    def __init__(self, piece_bytes: int = PLENTY_BYTES) -> None:
        self.names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._changes: list[Change] = []
        self.power_losses = 0
        self.life = 0
        """How many lives it has seen; files of an earlier one must not be used."""
        self.calls = 0
        self.crash_at: int | None = None
        """The number of the call that does not happen any more."""
        self.failure: Callable[[str, str], DiskFailed | None] | None = None
        """Asked before every call, also before reads, with its name and path."""
        self.owners_flushing = 0
        """Whose files a flush that is under way brings to disk."""
        self.free_bytes = PLENTY_BYTES
        self.piece_bytes = piece_bytes
        self.discarded: list[Discarded] = []
        """What nobody has begun to remove."""
        self.flushed_paths: list[list[str]] = []
        """What each group of a flush was to bring to disk, also those that failed."""

    # What the world does to it.

    def crash(self, random: Random) -> None:
        """Lose power. Open files are gone, and of what was not flushed only some is left."""
        self.power_losses += 1
        names = dict(self._durable_names)
        for change in self._changes[: random.randint(0, len(self._changes))]:
            _rename(names, change)
        self.names = names
        for inode in {id(inode): inode for inode in names.values()}.values():
            inode.crash(random)
        self._commit()
        self.end_life()

    def lose(self, path: str) -> None:
        """A directory and all in it."""
        for name in [name for name in self.names if name.startswith(f"{path}/")]:
            self.change_name(("remove", name, None))

    def end_life(self) -> None:
        """The process ended. What it wrote is there, for the system has it."""
        self.life += 1
        self.discarded = []
        self.calls = 0
        self.crash_at = None

    def fail_once(self, call: str, number: int = 0) -> None:
        """Let the call of this name, after so many others, fail for want of space, or else with EIO."""
        left = [number]

        def failure(name: str, path: str) -> DiskFailed | None:
            if name != call:
                return None
            left[0] -= 1
            if left[0] != -1:
                return None
            if call == "append":
                return DiskFull(f"{path}: no space left", errno.ENOSPC)
            return DiskFailed(f"{path}: input/output error", errno.EIO)

        self.failure = failure

    # Files.

    def file(self, path: str) -> MemoryFile:
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        return path in self.names or f"{path}/" in self.names

    def listing(self, path: str) -> list[str]:
        if path in self.names:
            raise DiskFailed(f"{path}: Not a directory", errno.ENOTDIR)
        below = self._below(path)
        if path and not below:
            raise DiskFailed(f"{path}: No such file or directory", errno.ENOENT)
        return sorted(below - {""})

    def make_directory(self, path: str) -> None:
        self.changing("make_directory", path, self.life)
        if not self.exists(path):
            self.change_name(("link", f"{path}/", Inode()))

    def remove_directory(self, path: str) -> None:
        self.changing("remove_directory", path, self.life)
        if self._below(path) - {""}:
            raise DiskFailed(f"{path}: Directory not empty", errno.ENOTEMPTY)
        self.change_name(("remove", f"{path}/", None))

    def rename(self, old: str, new: str) -> None:
        self.changing("rename", old, self.life)
        if not self.exists(old):
            raise DiskFailed(f"{old}: No such file or directory", errno.ENOENT)
        self.change_name(("rename directory" if f"{old}/" in self.names else "rename", old, new))

    def remove(self, path: str) -> None:
        self.changing("remove", path, self.life)
        self.change_name(("remove", path, None))

    def discard(self, path: str, *, after_ms: int = 0) -> None:
        assert path.endswith(DELETED), f"{path} was not deleted"
        self.discarded.append(Discarded([path], None, after_ms))

    def discard_directory(self, path: str, names: Sequence[str]) -> None:
        self.discarded.append(Discarded([f"{path}/{name}" for name in names], path, 0))

    def removal(self, discarded: Discarded) -> Iterator[None]:
        """Remove it, one change at a time."""
        life = self.life
        if any(self._size(path) > self.piece_bytes for path in discarded.paths):
            self.sync_names(life)
            yield
        for path in discarded.paths:
            while (size := self._size(path)) > self.piece_bytes:
                self.changing("cut", path, life)
                self.names[path].truncate(size - self.piece_bytes)
                yield
            self.remove(path)
            yield
        if discarded.directory is not None and not self._below(discarded.directory) - {""}:
            self.remove_directory(discarded.directory)

    def sync_names(self, life: int) -> None:
        self.changing("sync names", "", life)
        self._commit()

    def remove_discarded(self) -> None:
        """All of it, at once. What fails stays."""
        while self.discarded:
            for _ in self.removal(self.discarded[0]):
                pass
            del self.discarded[0]

    def read_whole(self, path: str) -> bytes:
        self.reading("read_whole", path, self.life)
        return bytes(self.names[path].content)

    def write_whole(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.changing("write_whole", path, self.life)
        self.check_directory_of(path)
        inode = Inode(data)
        self.change_name(("link", f"{path}.tmp", inode))
        if durable:
            inode.flush()
        self.change_name(("rename", f"{path}.tmp", path))
        if durable:
            self._commit()

    def flush(self, files: Sequence[File]) -> None:
        for error in self.flush_groups([files]).values():
            raise error

    def flush_groups(self, groups: Sequence[Sequence[File]]) -> dict[int, DiskFailed]:
        failures: dict[int, DiskFailed] = {}
        self.owners_flushing = len(groups)
        for number, files in enumerate(groups):
            self.flushed_paths.append([file.path for file in files])
            try:
                for file in files:
                    assert isinstance(file, MemoryFile)
                    file.flush()
            except DiskFailed as error:
                failures[number] = error
        if len(failures) < len(groups):
            self._commit()
        return failures

    def space(self) -> Space:
        return Space(PLENTY_BYTES, self.free_bytes)

    # For files.

    def changing(self, call: str, path: str, life: int) -> None:
        self.reading(call, path, life)
        if self.calls == self.crash_at:
            raise Crashed(f"before {call} of {path}")
        self.calls += 1

    def reading(self, call: str, path: str, life: int) -> None:
        assert life == self.life, f"{call} of {path}, which was opened in an earlier life"
        if self.failure is not None and (failure := self.failure(call, path)) is not None:
            raise failure

    def check_directory_of(self, path: str) -> None:
        directory = path.rpartition("/")[0]
        if directory and f"{directory}/" not in self.names:
            raise DiskFailed(f"{path}: No such file or directory", errno.ENOENT)

    def change_name(self, change: Change) -> None:
        _rename(self.names, change)
        self._changes.append(change)

    def _below(self, path: str) -> set[str]:
        """What is in a directory: itself too, as an empty name; nothing at all if there is none."""
        prefix = f"{path}/" if path else ""
        return {name.removeprefix(prefix).split("/")[0] for name in self.names if name.startswith(prefix)}

    def _size(self, path: str) -> int:
        return len(self.names[path].content) if path in self.names else 0

    def _commit(self) -> None:
        if self._changes:
            self._durable_names = dict(self.names)
            self._changes = []


def _change(content: bytearray, change: bytes | int) -> None:
    if isinstance(change, int):
        del content[change:]
    else:
        content += change


def _rename(names: dict[str, Inode], change: Change) -> None:
    kind, path, what = change
    if kind == "remove":
        names.pop(path, None)
    elif kind == "rename":
        assert isinstance(what, str)
        names[what] = names.pop(path)
    elif kind == "rename directory":
        for name in [name for name in names if name.startswith(f"{path}/")]:
            names[f"{what}/{name.removeprefix(f'{path}/')}"] = names.pop(name)
    else:
        assert isinstance(what, Inode)
        names[path] = what
