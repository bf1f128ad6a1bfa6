"""The lock of a directory: a file in it. Who made the directory for nothing removes both again.

So the file may vanish at every moment, and then there is no directory, or a lock without a name: it locks nobody out,
for who comes next makes another. Only what is locked and still has its name counts.
"""

import fcntl
import os
from contextlib import ExitStack, suppress
from errno import ENOENT
from pathlib import Path
from typing import IO

ATTEMPTS = 100
"""One for everybody who was here before us and goes away at this moment."""


def locked_file(path: Path, *, waits: bool) -> IO[str]:
    """Ours until it is closed. It is made, and the directories above it; BlockingIOError if it is somebody else's and
    nobody waits for it."""
    how = fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB
    for _ in range(ATTEMPTS):
        with suppress(FileNotFoundError), ExitStack() as failing:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = failing.enter_context(path.open("a+"))
            fcntl.flock(lock, how)
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                failing.pop_all()
                return lock
    raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
