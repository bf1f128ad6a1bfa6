"""Directories that belong to a process, and may be removed when that process is no more.

Whoever runs something for a while in a directory of its own says so in it. If it is killed before it could tidy up, the
next one of its kind finds the directory abandoned. One that is kept on purpose belongs to nobody, and is left alone; so
is what another user put there, and a link, which would have us remove what it leads to.
"""

import contextlib
import json
import os
import stat
import tempfile
from pathlib import Path

from klamm.local.processes import Process, process_of, state_of

OWNER = "owner.json"


def own(directory: Path) -> None:
    (directory / OWNER).write_text(json.dumps(process_of(os.getpid())._asdict()), encoding="utf-8")


def disown(directory: Path) -> None:
    (directory / OWNER).unlink(missing_ok=True)


def abandoned(prefix: str) -> list[Path]:
    """Those among the temporary ones whose name begins so, whose owner is dead."""
    found = sorted(Path(tempfile.gettempdir()).glob(f"{prefix}*"))
    return [directory for directory in found if _is_ours(directory) and _is_abandoned(directory)]


def _is_ours(directory: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        found = directory.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return False


def _is_abandoned(directory: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, TypeError):
        owner = Process(**json.loads((directory / OWNER).read_text(encoding="utf-8")))
        return state_of(owner) == "dead"
    return False
