"""The data directory of a node, taken: nobody else opens it while our process lives.

Who cannot start after all gives it back as it was: without the lock and the directories that were made for it.
"""

from contextlib import suppress
from pathlib import Path

from klamm.runtime.locks import locked_file
from klamm.runtime.problems import CannotStart

LOCK = ".lock"


class TakenDirectory:
    def __init__(self, path: Path) -> None:
        """Make the directory ours until the process ends, or say why not."""
        self.path = path
        try:
            self._made = [each for each in (path, *path.parents) if not each.exists()]
            self._has_made_lock = not (path / LOCK).exists()
            self._lock = locked_file(path / LOCK, waits=False)
        except BlockingIOError:
            raise CannotStart(
                f"the data directory {path} is in use by another process; stop it, or choose another with --dir"
            ) from None
        except OSError as error:
            raise CannotStart(f"the data directory {path} cannot be used: {error.strerror}") from error

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
