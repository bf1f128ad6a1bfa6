"""The data directory of a node, taken: nobody else opens it while our process lives.

Who cannot start after all gives it back as it was: without the lock and the directories that were made for it.
"""

import fcntl
import os
from contextlib import ExitStack, suppress
from errno import ENOENT
from pathlib import Path
from typing import IO

from klamm.runtime.problems import CannotStart

LOCK = ".lock"
ATTEMPTS = 10


class TakenDirectory:
    def __init__(self, path: Path) -> None:
        """Make the directory ours until the process ends, or say why not."""
        self.path = path
        try:
            self._made = [each for each in (path, *path.parents) if not each.exists()]
            self._has_made_lock = not (path / LOCK).exists()
            self._lock = self._locked()
        except BlockingIOError:
            raise CannotStart(
                f"the data directory {path} is in use by another process; stop it, or choose another with --dir"
            ) from None
        except OSError as error:
            raise CannotStart(f"the data directory {path} cannot be used: {error.strerror}") from error

    def _locked(self) -> IO[str]:
        for _ in range(ATTEMPTS):
            # Whoever has it may give it back meanwhile. Then there is no directory, or a lock without a name, which
            # locks nobody out.
            with suppress(FileNotFoundError), ExitStack() as failing:
                self.path.mkdir(parents=True, exist_ok=True)
                lock = failing.enter_context((self.path / LOCK).open("a+"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat((self.path / LOCK).stat(), os.fstat(lock.fileno())):
                    failing.pop_all()
                    return lock
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT))

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
