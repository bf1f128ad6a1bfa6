"""A disk in memory that forgets, tears and fails: the log's world in tests, and later in the simulator.

It keeps every promise of `klamm.log.files` and not one more. On `crash` each file keeps what was flushed and a drawn
part of what was appended or cut since, the last write torn, some blocks perhaps never written. Names that changed since
the last flush survive as a drawn prefix. Every call that changes something is counted, and any one of them can be made
to fail, or to be the last one before a crash.
"""

import errno
from collections.abc import Callable, Sequence
from random import Random

from klamm.ids import Bytes
from klamm.log.files import DiskFailed, DiskFull, File, Space

BLOCK_BYTES = 32
"""Much smaller than a real disk's, but no smaller than what a batch's checksum leaves out."""

Change = tuple[str, str, "Inode | str | None"]


class Crashed(BaseException):
    """The machine lost its power in the middle of a call. Nobody may catch this but the test."""


class Inode:
    """A file's bytes, the bytes of it that are on disk, and what happened since."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable = b""
        self.changes: list[bytes | int] = [content] if content else []

    def append(self, data: bytes) -> None:
        self.content += data
        self.changes.append(data)

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.changes.append(size)

    def flush(self) -> None:
        self.durable = bytes(self.content)
        self.changes = []

    def crash(self, random: Random) -> None:
        survived = bytearray(self.durable)
        kept = random.randint(0, len(self.changes))
        for change in self.changes[:kept]:
            if isinstance(change, int):
                del survived[change:]
            else:
                survived += change
        if kept < len(self.changes) and isinstance(torn := self.changes[kept], bytes):
            survived += torn[: random.randint(0, len(torn))]
        self._lose_blocks(survived, random)
        self.content = survived
        self.flush()

    def _lose_blocks(self, survived: bytearray, random: Random) -> None:
        """The file's size may be on disk before its bytes are."""
        changed = (at for at, byte in enumerate(self.durable) if at >= len(survived) or survived[at] != byte)
        start = next(changed, len(self.durable))
        if start < len(survived) and random.random() < 0.3:
            first = random.randrange(start, len(survived))
            last = random.randint(first, len(survived))
            first, last = max(start, first - first % BLOCK_BYTES), min(len(survived), last + -last % BLOCK_BYTES)
            survived[first:last] = bytes(last - first) if random.random() < 0.5 else random.randbytes(last - first)


class MemoryRegion:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def __bytes__(self) -> bytes:
        return self._content


class MemoryFile:
    def __init__(self, disk: "Disk", path: str) -> None:
        self._disk = disk
        self._life = disk.life
        self.path = path
        self._inode = disk.names.get(path)
        self.size = len(self._inode.content) if self._inode is not None else 0

    def append(self, data: Bytes) -> None:
        self._disk.changing("append", self.path, self._life)
        self.inode.append(bytes(data))
        self.size = len(self.inode.content)

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

    @property
    def inode(self) -> Inode:
        if self._inode is None:
            self._inode = Inode()
            self._disk.change_name(("link", self.path, self._inode))
        return self._inode


class Disk:
    """Implements `Files`."""

    def __init__(self) -> None:
        self.names: dict[str, Inode] = {}
        self._durable_names: dict[str, Inode] = {}
        self._changes: list[Change] = []
        self.directories: set[str] = set()
        self.life = 0
        """How many crashes there were; files of an earlier life must not be used."""
        self.calls = 0
        self.crash_at: int | None = None
        """The number of the call that does not happen any more."""
        self.failure: Callable[[str, str], DiskFailed | None] = lambda call, path: None
        """Asked before every call, also before reads, with its name and path."""

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

    def crash(self, random: Random) -> None:
        """Lose power. Open files are gone, and of what was not flushed only some is left."""
        names = dict(self._durable_names)
        for change in self._changes[: random.randint(0, len(self._changes))]:
            _apply(names, change)
        self.names = names
        for inode in {id(inode): inode for inode in names.values()}.values():
            inode.crash(random)
        self._commit()
        self.life += 1
        self.calls = 0
        self.crash_at = None

    # Files.

    def file(self, path: str) -> MemoryFile:
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        return path in self.names or path in self.directories

    def listing(self, path: str) -> list[str]:
        prefix = f"{path}/"
        return sorted({name.removeprefix(prefix).split("/")[0] for name in self.names if name.startswith(prefix)})

    def make_directory(self, path: str) -> None:
        self.changing("make_directory", path, self.life)
        self.directories.add(path)

    def remove_directory(self, path: str) -> None:
        self.changing("remove_directory", path, self.life)
        for name in self.listing(path):
            self.change_name(("remove", f"{path}/{name}", None))
        self.directories.discard(path)

    def rename(self, old: str, new: str) -> None:
        self.changing("rename", old, self.life)
        self.change_name(("rename", old, new))

    def remove(self, path: str) -> None:
        self.changing("remove", path, self.life)
        self.change_name(("remove", path, None))

    def read_whole(self, path: str) -> bytes:
        self.reading("read_whole", path, self.life)
        return bytes(self.names[path].content)

    def write_whole(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.changing("write_whole", path, self.life)
        inode = Inode(data)
        self.change_name(("link", f"{path}.tmp", inode))
        if durable:
            inode.flush()
        self.change_name(("rename", f"{path}.tmp", path))
        if durable:
            self._commit()

    def flush(self, files: Sequence[File]) -> None:
        self.changing("flush", " ".join(file.path for file in files), self.life)
        for file in files:
            assert isinstance(file, MemoryFile)
            file.inode.flush()
        self._commit()

    def space(self) -> Space:
        return Space(2**40, 2**40)

    # For files.

    def changing(self, call: str, path: str, life: int) -> None:
        self.reading(call, path, life)
        if self.calls == self.crash_at:
            raise Crashed(f"before {call} of {path}")
        self.calls += 1

    def reading(self, call: str, path: str, life: int) -> None:
        assert life == self.life, f"{call} of {path}, which was opened before a crash"
        failure = self.failure(call, path)
        if failure is not None:
            raise failure

    def change_name(self, change: Change) -> None:
        _apply(self.names, change)
        self._changes.append(change)

    def _commit(self) -> None:
        self._durable_names = dict(self.names)
        self._changes = []


def _apply(names: dict[str, Inode], change: Change) -> None:
    kind, path, what = change
    if kind == "remove":
        names.pop(path, None)
    elif kind == "rename":
        assert isinstance(what, str)
        names[what] = names.pop(path)
    else:
        assert isinstance(what, Inode)
        names[path] = what
