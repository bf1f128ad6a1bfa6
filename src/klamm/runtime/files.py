"""The disk: `Files` for real.

A `RealFile` is a name until it is used. Descriptors are opened on demand and closed when too many are open
(`runtime/descriptors.py`). A descriptor that somebody else needs (a region queued on a socket, a flush in its thread)
is pinned and never closed under them. A file that is removed while pinned lives on, nameless, until it is let go; a
large one is discarded instead, and keeps its name until then (`runtime/removal.py`). One that was opened for nothing
but a flush is closed after it.

What the operating system refuses becomes `DiskFailed` with its number, and a write that failed half way is taken
back, so that the file ends where it ended before.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from klamm.ids import Bytes
from klamm.log.files import DiskFailed, DiskFull, File, Space
from klamm.log.names import DELETED, LOG
from klamm.runtime.descriptors import Descriptors, descriptor_limit
from klamm.runtime.removal import PIECE_BYTES, Removal, Remover

SYNC_ALL_FROM = 64
"""From so many files on, a flush while nobody is served syncs the whole file system."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def disk_errors(path: str) -> Iterator[None]:
    """The one door through which an `OSError` of the disk becomes our own."""
    try:
        yield
    except OSError as error:
        raise disk_failed(error, path) from error


def disk_failed(error: OSError, path: str) -> DiskFailed:
    kind = DiskFull if error.errno in FULL else DiskFailed
    return kind(f"{path}: {error.strerror or error}", error.errno or 0)


class RealFile:
    __slots__ = ("_close_when_let_go", "_descriptor", "_descriptors", "_pins", "_used", "full_path", "path", "size")

    def __init__(self, path: str, full_path: str, descriptors: Descriptors) -> None:
        self.path = path
        self.full_path = full_path
        self.size = _size(full_path)
        self._descriptors = descriptors
        self._descriptor = -1
        self._pins = 0
        self._used = False
        self._close_when_let_go = False

    def append(self, data: Bytes) -> None:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._open()
        self._used = True
        try:
            written = os.pwrite(descriptor, data, self.size)
        except OSError as error:
            raise self._taken_back(error) from error
        if written != len(data):
            self._append_rest(descriptor, memoryview(data)[written:], self.size + written)
        else:
            self.size += written

    def read(self, position: int, length: int) -> bytes:
        descriptor = self._descriptor
        if descriptor < 0:
            descriptor = self._open()
        self._used = True
        try:
            return os.pread(descriptor, length, position)
        except OSError as error:
            raise disk_failed(error, self.path) from error

    def region(self, position: int, length: int) -> "RealRegion":
        return RealRegion(self, position, length)

    def truncate(self, size: int) -> None:
        if size == self.size:
            return
        descriptor = self.pinned_descriptor()
        try:
            with disk_errors(self.path):
                os.ftruncate(descriptor, size)
        finally:
            self.unpin()
        self.size = size

    def rename(self, new_path: str) -> None:
        new_full_path = self._descriptors.full_path(new_path)
        with disk_errors(self.path):
            os.rename(self.full_path, new_full_path)
        self._descriptors.name_changed(new_full_path)
        self.path, self.full_path = new_path, new_full_path

    def remove(self) -> None:
        with disk_errors(self.path), contextlib.suppress(FileNotFoundError):
            os.unlink(self.full_path)
        self._descriptors.name_changed(self.full_path)
        self.close()

    def close(self) -> None:
        self._close_when_let_go = bool(self._pins)
        if self._descriptor >= 0 and not self._pins:
            os.close(self._descriptor)
            self._descriptor = -1
            self._descriptors.closed()

    def pinned_descriptor(self) -> int:
        """The descriptor, which stays open until `unpin`."""
        descriptor = self._descriptor if self._descriptor >= 0 else self._open()
        self._pins += 1
        return descriptor

    def pin_for_flush(self) -> bool:
        """Whether there is something to flush: not if the file was removed meanwhile, and a flush makes none.

        Most files that are flushed are in use. Checkpoints and snapshots are not: they were written as a whole, and
        each time they are another file of the same name."""
        was_open = self._descriptor >= 0
        if not was_open:
            try:
                self._open(os.O_RDWR)
            except DiskFailed as error:
                if error.errno == errno.ENOENT and os.path.exists(os.path.dirname(self.full_path)):
                    return False
                raise
        self._pins += 1
        self._close_when_let_go |= not was_open
        return True

    def unpin(self) -> None:
        assert self._pins > 0
        self._pins -= 1
        if self._close_when_let_go and not self._pins:
            self.close()

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    @property
    def is_pinned(self) -> bool:
        return self._pins > 0

    def is_same_as(self, inodes: set[int]) -> bool:
        return self.is_open and os.fstat(self._descriptor).st_ino in inodes

    def may_be_closed(self) -> bool:
        """Asked by the clock's hand: a file used since the last time is spared once."""
        if self._used or self._pins:
            self._used = False
            return False
        return True

    def _open(self, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        self._close_when_let_go = False
        with disk_errors(self.path):
            self._descriptors.make_room()
            try:
                self._descriptor = self._descriptors.opened_for(self.full_path, os.O_RDWR)
            except FileNotFoundError:
                if not flags & os.O_CREAT:
                    raise
                self._descriptor = self._descriptors.opened_for(self.full_path, flags)
                self._descriptors.name_changed(self.full_path)
        self._descriptors.opened(self)
        return self._descriptor

    def _append_rest(self, descriptor: int, rest: memoryview, position: int) -> None:
        """A short write is how a disk that becomes full announces it; the next write says why."""
        try:
            while rest:
                written = os.pwrite(descriptor, rest, position)
                position += written
                rest = rest[written:]
        except OSError as error:
            raise self._taken_back(error) from error
        self.size = position

    def _taken_back(self, error: OSError) -> DiskFailed:
        """The failure to report, after cutting off what a failed append may have left behind."""
        try:
            os.ftruncate(self._descriptor, self.size)
        except OSError as second:
            return disk_failed(second, self.path)
        return disk_failed(error, self.path)

    def __repr__(self) -> str:
        return f"<{self.path} {self.size} bytes{' open' if self._descriptor >= 0 else ''}>"


class RealRegion:
    """Bytes of a file, to be sent without passing through Python. It pins its file until it is released."""

    __slots__ = ("descriptor", "file", "length", "position")

    def __init__(self, file: RealFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.descriptor = -1
        self.descriptor = file.pinned_descriptor()

    def __len__(self) -> int:
        return self.length

    def __bytes__(self) -> bytes:
        try:
            return os.pread(self.descriptor, self.length, self.position)
        except OSError as error:
            raise disk_failed(error, self.file.path) from error

    def release(self) -> None:
        if self.descriptor >= 0:
            self.descriptor = -1
            self.file.unpin()

    def __del__(self) -> None:
        self.release()


class RealFiles:
    """One data directory."""

    piece_bytes = PIECE_BYTES

    def __init__(self, root: Path, limit: int | None = None) -> None:
        self.root = root
        self.descriptors = Descriptors(root, limit or descriptor_limit())
        self.on_not_removed: Callable[[str, str], None] = lambda path, reason: None
        """Called, in another thread, when a file or directory that was discarded cannot be removed."""
        self.remover = Remover(self._not_removed)

    def file(self, path: str) -> RealFile:
        with disk_errors(path):
            return RealFile(path, self.descriptors.full_path(path), self.descriptors)

    def exists(self, path: str) -> bool:
        return os.path.exists(self.descriptors.full_path(path))

    def listing(self, path: str) -> list[str]:
        with disk_errors(path):
            return sorted(os.listdir(self.descriptors.full_path(path)))

    def make_directory(self, path: str) -> None:
        with disk_errors(path):
            os.makedirs(self.descriptors.full_path(path), exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        old_full_path, new_full_path = self.descriptors.full_path(old), self.descriptors.full_path(new)
        with disk_errors(old):
            os.replace(old_full_path, new_full_path)
        self.descriptors.moved(old_full_path, new_full_path)

    def remove(self, path: str) -> None:
        with disk_errors(path), contextlib.suppress(FileNotFoundError):
            os.unlink(self.descriptors.full_path(path))
            self.descriptors.name_changed(self.descriptors.full_path(path))

    def discard(self, path: str, *, after_ms: int = 0) -> None:
        assert path.endswith(DELETED), f"{path} was not deleted"
        full_path = self.descriptors.full_path(path)
        self._discard([full_path], None, os.path.dirname(full_path), after_ms / 1000)

    def discard_directory(self, path: str, names: Sequence[str]) -> None:
        full_path = self.descriptors.full_path(path)
        self.descriptors.directory_removed(full_path)
        self._discard([f"{full_path}/{name}" for name in names], full_path, os.path.dirname(full_path), 0.0)

    def _discard(self, paths: Sequence[str], directory: str | None, renamed_in: str, after_seconds: float) -> None:
        large = set()
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(path)
                if found.st_size > PIECE_BYTES:
                    large.add(found.st_ino)
        holders = self.descriptors.pinned(large) if large else ()
        self.remover.remove(Removal(paths, directory, renamed_in, holders), after_seconds)

    def _not_removed(self, full_path: str, reason: str) -> None:
        self.on_not_removed(os.path.relpath(full_path, self.root), reason)

    def read_whole(self, path: str) -> bytes:
        with disk_errors(path):
            return Path(self.descriptors.full_path(path)).read_bytes()

    def write_whole(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """All or nothing: a reader, also one after a crash, sees the old content or the new, never a mixture."""
        full_path = self.descriptors.full_path(path)
        temporary = full_path + ".tmp"
        with disk_errors(path):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, full_path)
            if durable:
                _sync_directory(os.path.dirname(full_path))
            else:
                self.descriptors.name_changed(full_path)

    def flush(self, files: Sequence[File]) -> None:
        for error in self.flush_groups([files]).values():
            raise error

    def flush_groups(self, groups: Sequence[Sequence[File]]) -> dict[int, DiskFailed]:
        if sum(map(len, groups)) >= SYNC_ALL_FROM and self._sync_file_system():
            self.descriptors.unsynced.clear()
            return {}
        failures: dict[int, DiskFailed] = {}
        for number, files in enumerate(groups):
            # One at a time, so that no more files are open at once than a group has.
            pinned = self.pinned([files])
            pinned.sync()
            for error in pinned.let_go().values():
                failures[number] = error
        return failures

    def _sync_file_system(self) -> bool:
        """Everything at once, which for thousands of files takes a fraction of the time of one after the other. If that
        fails, it may be for any file on it, somebody else's too: then each of ours has to be asked. (Linux keeps what
        went wrong with a file until somebody has been told of it by that file.)"""
        from ctypes import CDLL

        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return bool(CDLL(None).syncfs(descriptor) == 0)
        finally:
            os.close(descriptor)

    def pinned(self, groups: Iterable[Sequence[File]]) -> "Pinned":
        """Pin groups of files for a flush, which may happen in another thread."""
        return Pinned(self.descriptors, [self._pinned_group(files) for files in groups])

    def _pinned_group(self, files: Sequence[File]) -> "_Group":
        group = _Group()
        try:
            for file in files:
                assert isinstance(file, RealFile)
                if file.pin_for_flush():
                    group.files.append(file)
        except DiskFailed as error:
            group.error = error
        # Of files that are gone too, since that they are gone has to be on disk as well.
        group.directories = {os.path.dirname(file.full_path) for file in files if isinstance(file, RealFile)}
        return group

    def close(self) -> None:
        """Let go of every descriptor. Whoever uses a file after this opens it again."""
        self.descriptors.close_all()

    def space(self) -> Space:
        with disk_errors("the data directory"):
            found = os.statvfs(self.root)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


class _Group:
    """Files of one owner."""

    __slots__ = ("directories", "error", "files")

    def __init__(self) -> None:
        self.files: list[RealFile] = []
        self.directories: set[str] = set()
        self.error: Exception | None = None
        """Why not all of it is on disk."""


class Pinned:
    """Groups of files that stay open until they are on disk, and the directories in which their names, or others,
    changed. Somebody has to let go of them, whatever became of it."""

    __slots__ = ("_descriptors", "_directories", "_groups")

    def __init__(self, descriptors: Descriptors, groups: Sequence[_Group]) -> None:
        self._descriptors = descriptors
        self._groups = groups
        changed = {directory for group in groups for directory in group.directories} & descriptors.unsynced
        descriptors.unsynced -= changed
        self._directories: dict[str, Exception | None] = dict.fromkeys(sorted(changed))

    def sync(self) -> None:
        """Bring bytes and names to disk. Safe in another thread: it touches nothing of theirs that changes.

        A group that has failed is given up; the others are not held up by it."""
        for group in self._groups:
            if group.error is None:
                group.error = _error_of(group.files)
        for directory in self._directories:
            self._directories[directory] = _error_of_directory(directory)
        for group in self._groups:
            for directory in sorted(group.directories):
                group.error = group.error or self._directories.get(directory)

    def let_go(self) -> dict[int, DiskFailed]:
        """In the thread of the files again: the groups of which not everything is on disk, and why."""
        failures = {}
        for number, group in enumerate(self._groups):
            for file in group.files:
                file.unpin()
            if group.error is not None:
                failures[number] = _as_disk_failed(group.error)
        # Whoever needs these names next has to hear the same, or find them on disk after all.
        self._descriptors.unsynced |= {each for each, error in self._directories.items() if error is not None}
        return failures


def _error_of(files: Sequence[RealFile]) -> Exception | None:
    try:
        for file in files:
            with disk_errors(file.path):
                os.fdatasync(file._descriptor)
    except Exception as error:
        # Whatever it was: who waits for this flush must hear that it did not happen.
        return error
    return None


def _error_of_directory(path: str) -> Exception | None:
    try:
        # A directory that is gone belonged to a topic that was deleted meanwhile. Nobody waits for it.
        with disk_errors(path), contextlib.suppress(FileNotFoundError):
            _sync_directory(path)
    except Exception as error:
        return error
    return None


def _as_disk_failed(error: Exception) -> DiskFailed:
    return error if isinstance(error, DiskFailed) else DiskFailed(f"{type(error).__name__}: {error}")


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(full_path: str) -> int:
    try:
        found = os.lstat(full_path)
        if not stat.S_ISLNK(found.st_mode):
            return found.st_size
        if full_path.endswith(LOG):
            # What it leads to may be another partition's, which would be cut and appended to.
            raise OSError(errno.ELOOP, "a segment must not be a symbolic link; put the file itself in its place")
        return os.stat(full_path).st_size
    except FileNotFoundError:
        return 0
