"""What the log needs from a disk. `runtime/files.py` is the real one, tests and the simulator have their own.

A `File` is a name until it is used; appending to it, even nothing, makes it exist. Appends and truncations reach the
page cache; `flush` brings them to the disk, and never makes a file: one that is gone is left out, unless its directory
is gone as well. What a crash may leave of the rest:

- of each file by itself, the bytes that were flushed and any part of what was appended or cut since, perhaps torn;
- of all names (creations, renames, removals), those changed before the last flush, and of the later ones the first
  few, in their order. Journaling file systems keep that order, and commit names together with bytes flushed after
  them.

Paths are relative to the data directory, with "/" between the parts. Every failure is a `DiskFailed`.

A file system frees a gigabyte in a tenth of a second or more, while whoever cut or removed the file waits. So nobody
cuts more than `piece_bytes` at once, and large files are discarded: renamed by their owner, removed later by others.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from klamm.ids import Bytes

FULL_BELOW_BYTES = 64 << 10
"""A disk with less than this is full, though nobody has tried to write."""
MOST_ROOM_BYTES = 16 << 20
ROOM_SHARE = 10


class DiskFailed(Exception):  # noqa: N818
    """The disk refused: an EIO, a file system gone read-only, a failed fsync."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class DiskFull(DiskFailed):
    """No space left. Nothing was written."""


class Space(NamedTuple):
    """Of the file system that holds the data directory."""

    total_bytes: int
    free_bytes: int

    @property
    def has_room(self) -> bool:
        """Enough to go on with after it was full: more than the largest batch, or nearly all would be refused again.
        Of a small disk a tenth is enough."""
        return self.free_bytes >= min(MOST_ROOM_BYTES, max(FULL_BELOW_BYTES, self.total_bytes // ROOM_SHARE))


class Region(Protocol):
    """Bytes of a file that can be sent. They stay readable when the file is renamed or removed meanwhile."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...


class File(Protocol):
    path: str
    size: int
    """Kept current by every call; 0 for a file that does not exist yet."""

    def append(self, data: Bytes, /) -> None: ...
    def read(self, position: int, length: int, /) -> bytes:
        """Fewer bytes than asked for only where the file ends."""
        ...

    def truncate(self, size: int, /) -> None: ...
    def region(self, position: int, length: int, /) -> Region: ...
    def close(self) -> None: ...
    def remove(self) -> None: ...
    def rename(self, new_path: str, /) -> None: ...


class Files(Protocol):
    piece_bytes: int
    """So much of a file can be cut off at once without holding anybody up."""

    def file(self, path: str, /) -> File: ...
    def exists(self, path: str, /) -> bool: ...
    def listing(self, path: str, /) -> list[str]:
        """The names in a directory; ENOTDIR for a file, ENOENT for nothing."""
        ...

    def make_directory(self, path: str, /) -> None: ...
    def rename(self, old: str, new: str, /) -> None: ...
    def remove(self, path: str, /) -> None: ...
    def discard(self, path: str, /, *, after_ms: int = 0) -> None:
        """Remove this file, whose name ends in `.deleted`, so much later at the earliest. It is not waited for. Bytes
        go only when the name is on disk: no crash gives a file its old name back with half of its bytes. What is not
        removed before the process ends is to be discarded again after the next start."""
        ...

    def discard_directory(self, path: str, names: Sequence[str], /) -> None:
        """The same for these files in a directory that was renamed, and then for the directory itself, unless something
        else is in it."""
        ...

    def read_whole(self, path: str, /) -> bytes: ...
    def write_whole(self, path: str, data: bytes, /, *, durable: bool = True) -> None: ...
    def flush(self, files: Sequence[File], /) -> None: ...
    def flush_groups(self, groups: Sequence[Sequence[File]], /) -> Mapping[int, DiskFailed]:
        """Flush all of them; of which groups, by their numbers, not every file and name is on disk, and why."""
        ...

    def space(self) -> Space: ...
