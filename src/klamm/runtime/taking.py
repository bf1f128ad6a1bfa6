"""The data directory of a node, taken: nobody else opens it while our process lives.

Who cannot start after all gives it back as it was: without the lock and the directories that were made for it.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

LOCK = ".lock"


class CannotStart(Exception):  # noqa: N818
    """Why, and what to do about it, in a sentence for the person who called."""


class TakenDirectory:
    def __init__(self, path: Path) -> None:
        """Make the directory ours until the process ends, or say why not."""
        self.path = path
        try:
            self._made = [each for each in (path, *path.parents) if not each.exists()]
            path.mkdir(parents=True, exist_ok=True)
            self._has_made_lock = not (path / LOCK).exists()
            self._lock: IO[str] = (path / LOCK).open("a+")
        except OSError as error:
            raise CannotStart(f"the data directory {path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have given it back right before: a lock without a name locks nobody out.
            is_there = os.path.samestat((path / LOCK).stat(), os.fstat(self._lock.fileno()))
        except OSError:
            is_there = False
        if not is_there:
            self._lock.close()
            raise CannotStart(
                f"the data directory {path} is in use by another process; stop it, or choose another with --dir"
            )

    def let_go(self) -> None:
        self._lock.close()

    def give_back(self) -> None:
        """As it was before. What else was put there stays, and the directories around it."""
        with suppress(OSError):
            if self._has_made_lock:
                (self.path / LOCK).unlink()
            for each in self._made:
                each.rmdir()
        self.let_go()
