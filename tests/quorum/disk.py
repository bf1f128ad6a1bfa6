"""A disk in memory that forgets: after `crash`, what was not flushed is gone, or torn, as the port `Files` allows."""

from collections.abc import Sequence
from random import Random
from typing import cast

from klamm.ids import Bytes
from klamm.log.files import DiskFailed, File


class _Content:
    def __init__(self) -> None:
        self.now = bytearray()
        self.flushed = b""


class MemoryFile:
    def __init__(self, disk: "Disk", path: str) -> None:
        self._disk = disk
        self.path = path

    @property
    def size(self) -> int:
        content = self._disk.names.get(self.path)
        return len(content.now) if content else 0

    def append(self, data: Bytes, /) -> None:
        self._disk.content(self.path).now += data

    def read(self, position: int, length: int, /) -> bytes:
        content = self._disk.names.get(self.path)
        return bytes(content.now[position : position + length]) if content else b""

    def truncate(self, size: int, /) -> None:
        del self._disk.content(self.path).now[size:]

    def region(self, position: int, length: int, /) -> bytes:
        return self.read(position, length)

    def close(self) -> None:
        pass

    def remove(self) -> None:
        self._disk.remove(self.path)

    def rename(self, new_path: str, /) -> None:
        self._disk.rename(self.path, new_path)
        self.path = new_path


class Disk:
    """`names` is the directory as it is, `journal` the later states of it that a crash may still go back from."""

    def __init__(self) -> None:
        self.names: dict[str, _Content] = {}
        self.journal: list[dict[str, _Content]] = [{}]
        self.flushes = 0
        self.fails_to_flush = False

    def file(self, path: str, /) -> File:
        return cast(File, MemoryFile(self, path))  # Its size is computed, which a Protocol cannot say.

    def content(self, path: str) -> _Content:
        if path not in self.names:
            self.names[path] = _Content()
            self._named()
        return self.names[path]

    def exists(self, path: str, /) -> bool:
        return path in self.names or any(name.startswith(f"{path}/") for name in self.names)

    def listing(self, path: str, /) -> list[str]:
        prefix = f"{path}/" if path else ""
        return sorted({name[len(prefix) :].split("/")[0] for name in self.names if name.startswith(prefix)})

    def make_directory(self, path: str, /) -> None:
        pass

    def remove_directory(self, path: str, /) -> None:
        self.names = {name: content for name, content in self.names.items() if not name.startswith(f"{path}/")}
        self._named()

    def rename(self, old: str, new: str, /) -> None:
        self.names[new] = self.names.pop(old)
        self._named()

    def remove(self, path: str, /) -> None:
        self.names.pop(path, None)
        self._named()

    def read_whole(self, path: str, /) -> bytes:
        return bytes(self.names[path].now)

    def write_whole(self, path: str, data: bytes, /, *, durable: bool = True) -> None:
        content = _Content()
        content.now += data
        if durable:
            content.flushed = bytes(data)
        self.names[path] = content
        self._named()
        if durable:
            self.journal = [dict(self.names)]

    def flush(self, files: Sequence[File], /) -> None:
        if self.fails_to_flush:
            raise DiskFailed("flush failed")
        for file in files:
            content = self.names[file.path]
            content.flushed = bytes(content.now)
        self.flushes += 1
        self.journal = [dict(self.names)]

    def free_bytes(self, path: str, /) -> int:
        return 2**40

    def crash(self, random: Random) -> None:
        """Of the names some first few changes are kept, of each file what was flushed and a part of the rest, which may
        be torn."""
        self.names = dict(random.choice(self.journal))
        for content in self.names.values():
            start = min(len(content.flushed), len(content.now))
            rest = content.now[start : random.randint(start, len(content.now))]
            if rest and random.random() < 0.5:
                # A piece in the middle never reached the disk.
                first, last = sorted((random.randint(0, len(rest)), random.randint(0, len(rest))))
                rest[first:last] = bytes(last - first)
            content.now = bytearray(content.flushed[:start] + rest)
            content.flushed = bytes(content.now)
        self.journal = [dict(self.names)]

    def _named(self) -> None:
        self.journal.append(dict(self.names))
