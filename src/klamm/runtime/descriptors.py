"""How many files may be open at once, which of them is closed for another, and under which numbers they are open.

By the clock algorithm: a use marks a file, the hand passes over marked files once. The numbers are high ones: a cluster
may be part of somebody's process, and whoever uses select() there can have none but the first 1024.
"""

import contextlib
import errno
import fcntl
import os
import resource
from collections import deque
from pathlib import Path
from typing import Protocol

SPARE_DESCRIPTORS = 32
RESERVED_DESCRIPTORS = 1_000
"""Left for sockets and everything else when the process's limit is shared out."""

FIRST_DESCRIPTOR = 1_024
"""Spark's Python is such a user of select()."""


class OpenedFile(Protocol):
    @property
    def is_open(self) -> bool: ...
    @property
    def is_pinned(self) -> bool: ...
    def is_same_as(self, inodes: set[int], /) -> bool: ...
    def may_be_closed(self) -> bool: ...
    def close(self) -> None: ...


class Descriptors:
    """The open files of one data directory, at most `limit` of them."""

    def __init__(self, root: Path, limit: int) -> None:
        self._root = f"{root}/"
        self.limit = limit
        self._clock: deque[OpenedFile] = deque()
        self.open_count = 0
        self.unsynced: set[str] = set()
        """Directories in which names changed since they were synced."""

    def full_path(self, path: str) -> str:
        return self._root + path

    def name_changed(self, full_path: str) -> None:
        self.unsynced.add(full_path.rpartition("/")[0])

    def moved(self, old: str, new: str) -> None:
        """A file; or a directory, with the names that changed in it."""
        if old in self.unsynced:
            self.unsynced.remove(old)
            self.unsynced.add(new)
        self.name_changed(new)

    def directory_removed(self, full_path: str) -> None:
        """Nothing in it will ever be synced."""
        self.unsynced.discard(full_path)
        self.name_changed(full_path)

    def opened_for(self, full_path: str, flags: int) -> int:
        """Open a file; if the process has no descriptor left, at the cost of another file that is open."""
        try:
            return _opened(full_path, flags)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
        self._close_one()
        return _opened(full_path, flags)

    def make_room(self) -> None:
        if self.open_count >= self.limit:
            self._close_one()

    def opened(self, file: OpenedFile) -> None:
        self.open_count += 1
        self._clock.append(file)

    def closed(self) -> None:
        self.open_count -= 1
        if len(self._clock) > 2 * self.open_count + 64:
            self._clock = deque(file for file in self._clock if file.is_open)

    def pinned(self, inodes: set[int]) -> list[OpenedFile]:
        """Those of these files that are in somebody's hands, under whatever name they were opened."""
        return [file for file in self._clock if file.is_pinned and file.is_same_as(inodes)]

    def close_all(self) -> None:
        for file in list(self._clock):
            file.close()

    def for_others(self) -> int:
        """How many the process may use for sockets, so that files find theirs."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(16, soft - self.limit - SPARE_DESCRIPTORS)

    def _close_one(self) -> None:
        for _ in range(2 * len(self._clock)):
            if not self._clock:
                return
            candidate = self._clock.popleft()
            if not candidate.is_open:
                continue
            if candidate.may_be_closed():
                candidate.close()
                return
            self._clock.append(candidate)


def descriptor_limit() -> int:
    """How many files may be open, once the soft limit has been raised as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return max(64, min(soft - RESERVED_DESCRIPTORS, soft // 2))


def _opened(full_path: str, flags: int) -> int:
    descriptor = os.open(full_path, flags | os.O_CLOEXEC, 0o644)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    except OSError:
        # The process may not have so many.
        return descriptor
    os.close(descriptor)
    return moved
