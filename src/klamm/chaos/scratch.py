"""The directory of a run, and what is left of runs whose process was killed before it could tidy up.

The directory says whose it is. If its owner is no more, its nodes are ended, its disks unmounted, and it is removed; a
directory that is kept on purpose belongs to nobody, and is never touched again.
"""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from klamm.chaos.disks import mounted_under, unmount
from klamm.chaos.network import remove_leftovers
from klamm.chaos.processes import kill_written_down
from klamm.local.processes import Process, process_of, state_of

PREFIX = "klamm-chaos-"
NETWORK_PREFIX = "kchaos"
OWNER = "owner.json"


class Scratch:
    def __init__(self, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{name}-"))
        self.is_kept = False
        owner = process_of(os.getpid())
        (self.directory / OWNER).write_text(json.dumps(owner._asdict()), encoding="utf-8")

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_kept:
            (self.directory / OWNER).unlink(missing_ok=True)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def tidy_up_after_others() -> list[str]:
    """What runs left behind that ended without tidying up is removed; what it was."""
    found = []
    for directory in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        if not _is_abandoned(directory):
            continue
        kill_written_down(directory)
        for place in mounted_under(directory):
            unmount(Path(place))
        shutil.rmtree(directory, ignore_errors=True)
        found.append(str(directory))
    return found + remove_leftovers(NETWORK_PREFIX)


def _is_abandoned(directory: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, TypeError):
        owner = Process(**json.loads((directory / OWNER).read_text(encoding="utf-8")))
        return state_of(owner) == "dead"
    return False
