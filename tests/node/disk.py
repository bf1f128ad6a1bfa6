"""The log's forgetful disk with what a whole node needs besides: a root, and directories that are made and renamed.

A directory is a name like any other (`orders-0/`), so what a crash leaves of it follows the same rule: of the names
that changed since the last flush, the first few survive, in their order. Renaming a directory is one such change.
"""

import errno
from collections.abc import Sequence
from random import Random

from klamm.log.files import DiskFailed, File, Space
from tests.log.disk import Change, Disk, Inode, _apply

PLENTY_BYTES = 2**40
_DIRECTORY_RENAMED = "rename directory"


class NodeDisk(Disk):
    def __init__(self) -> None:
        super().__init__()
        self.free_bytes = PLENTY_BYTES
        self.flushed_paths: list[list[str]] = []
        """What each flush was asked to bring to disk, also those that failed."""

    def crash(self, random: Random) -> None:
        names = dict(self._durable_names)
        for change in self._changes[: random.randint(0, len(self._changes))]:
            _apply_any(names, change)
        self.names = names
        for inode in {id(inode): inode for inode in names.values()}.values():
            inode.crash(random)
        self._commit()
        self.life += 1
        self.calls = 0
        self.crash_at = None

    def exists(self, path: str) -> bool:
        return path in self.names or f"{path}/" in self.names

    def listing(self, path: str) -> list[str]:
        prefix = f"{path}/" if path else ""
        below = {name.removeprefix(prefix).split("/")[0] for name in self.names if name.startswith(prefix)}
        return sorted(below - {""})

    def make_directory(self, path: str) -> None:
        self.changing("make_directory", path, self.life)
        if not self.exists(path):
            self.change_name(("link", f"{path}/", Inode()))

    def remove_directory(self, path: str) -> None:
        self.changing("remove_directory", path, self.life)
        for name in [name for name in self.names if name.startswith(f"{path}/")]:
            self.change_name(("remove", name, None))

    def rename(self, old: str, new: str) -> None:
        self.changing("rename", old, self.life)
        if not self.exists(old):
            raise DiskFailed(f"{old}: No such file or directory", errno.ENOENT)
        self.change_name((_DIRECTORY_RENAMED if f"{old}/" in self.names else "rename", old, new))

    def flush(self, files: Sequence[File]) -> None:
        self.flushed_paths.append([file.path for file in files])
        super().flush(files)

    def space(self) -> Space:
        return Space(PLENTY_BYTES, self.free_bytes)

    def change_name(self, change: Change) -> None:
        _apply_any(self.names, change)
        self._changes.append(change)


def _apply_any(names: dict[str, Inode], change: Change) -> None:
    kind, old, new = change
    if kind != _DIRECTORY_RENAMED:
        _apply(names, change)
        return
    for name in [name for name in names if name.startswith(f"{old}/")]:
        names[f"{new}/{name.removeprefix(f'{old}/')}"] = names.pop(name)
