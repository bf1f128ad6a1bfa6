"""Removing files without holding anybody up: a thread that cuts the large ones down, piece by piece.

A file system frees blocks, and the kernel its cached pages, within the call that gives them up: 50 to 200 ms for a
gigabyte on ext4, in `unlink`, in `ftruncate`, and in the `close` of a file that has no name any more. So none of that
happens in the loop's thread. What is to go was renamed by whoever owned it. Here the directory is synced first, so that
no crash gives a file its old name back with half of its bytes; then the file is cut from its end, with pauses that
leave the disk and the processor to others; its name goes last. What is not done when the process ends is found by its
name at the next start.

A file with bytes that are still queued for somebody is not cut before they have left.
"""

import contextlib
import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from typing import Protocol

PIECE_BYTES = 16 << 20
"""Two to four milliseconds, where nobody else wants the processor."""

PAUSES = 9.0
"""Between two pieces, in times of what the last one took: a tenth of one core is left to it, and still it gives back
half a gigabyte a second."""

LOOK_AGAIN_SECONDS = 0.5
"""When a file could not be cut because somebody was still being sent of it."""

TRY_AGAIN_SECONDS = 60.0
"""When the disk refused."""

LONGEST_WAIT_SECONDS = 3600.0
"""`file.delete.delay.ms` may be longer than any wait of the system's."""


class Holder(Protocol):
    """An open file."""

    @property
    def is_pinned(self) -> bool: ...


@dataclass(slots=True)
class Removal:
    paths: Sequence[str]
    directory: str | None
    """To be removed after the files in it, if nothing is left there then."""
    renamed_in: str
    """The directory in which the name changed that says that they are to go."""
    holders: Sequence[Holder]
    """Files of these that were being sent when they were deleted. Nobody else begins to."""
    due: float = 0.0
    was_refused: bool = False


class Remover:
    """The thread starts with the first removal. `on_failure(path, reason)` is called in it, once for each removal."""

    def __init__(self, on_failure: Callable[[str, str], None], piece_bytes: int = PIECE_BYTES) -> None:
        self._on_failure = on_failure
        self._piece_bytes = piece_bytes
        self._wishes: SimpleQueue[Removal | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def remove(self, removal: Removal, after_seconds: float = 0.0) -> None:
        """Not any more once it was stopped: the next start finds what is left."""
        if self._stop.is_set():
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="remove", daemon=True)
            self._thread.start()
        removal.due = time.monotonic() + after_seconds
        self._wishes.put(removal)

    def stop(self) -> None:
        """After the piece under way. Nothing is touched after this."""
        self._stop.set()
        if self._thread is not None:
            self._wishes.put(None)
            self._thread.join()

    def _run(self) -> None:
        waiting: list[tuple[float, int, Removal]] = []
        order = count()
        while not self._stop.is_set():
            patience = min(max(0.0, waiting[0][0] - time.monotonic()), LONGEST_WAIT_SECONDS) if waiting else None
            try:
                wish = self._wishes.get(timeout=patience)
            except Empty:
                if waiting[0][0] > time.monotonic():
                    continue
                wish = heappop(waiting)[2]
                self._try(wish)
                if not wish.due:
                    continue
            if wish is not None:
                heappush(waiting, (wish.due, next(order), wish))

    def _try(self, removal: Removal) -> None:
        """`due` says when to try again, or is 0."""
        removal.due = 0.0
        try:
            if not self._removed(removal):
                removal.due = time.monotonic() + LOOK_AGAIN_SECONDS
        except FileNotFoundError:
            # Its directory was deleted meanwhile, and it goes with that one.
            return
        except OSError as error:
            removal.due = time.monotonic() + TRY_AGAIN_SECONDS
            if not removal.was_refused:
                removal.was_refused = True
                self._on_failure(removal.directory or removal.paths[0], error.strerror or str(error))

    def _removed(self, removal: Removal) -> bool:
        """Whether it was; not if somebody is still being sent of it."""
        large = [path for path in removal.paths if _size(path) > self._piece_bytes]
        if large:
            if any(holder.is_pinned for holder in removal.holders):
                return False
            _sync(removal.renamed_in)
        for path in removal.paths:
            if path in large:
                self._cut(path)
            if self._stop.is_set():
                return True
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if removal.directory is not None:
            _remove_empty(removal.directory)
        return True

    def _cut(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            while size > self._piece_bytes and not self._stop.is_set():
                size -= self._piece_bytes
                began = time.monotonic()
                os.ftruncate(descriptor, size)
                self._stop.wait(PAUSES * (time.monotonic() - began))
        finally:
            os.close(descriptor)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):
            raise
