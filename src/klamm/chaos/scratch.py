"""The directory of a run, and what is left of runs whose process was killed before it could tidy up.

If the owner of a directory is no more, its nodes are ended, its disks unmounted, and it is removed.
"""

import os
import shutil
import tempfile
from pathlib import Path

from klamm.chaos.disks import mounted_under, unmount
from klamm.chaos.network import remove_leftovers
from klamm.chaos.processes import kill_written_down
from klamm.local.owned import abandoned, disown, own

PREFIX = "klamm-chaos-"
NETWORK_PREFIX = "kchaos"


class Scratch:
    def __init__(self, name: str) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{name}-"))
        self.is_kept = False
        own(self.directory)

    def __enter__(self) -> "Scratch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_kept:
            disown(self.directory)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def tidy_up_after_others() -> list[str]:
    """What runs left behind that ended without tidying up is removed; what it was."""
    found = []
    for directory in abandoned(PREFIX):
        kill_written_down(directory)
        for place in mounted_under(directory):
            unmount(Path(place))
        shutil.rmtree(directory, ignore_errors=True)
        found.append(str(directory))
    return found + remove_leftovers(NETWORK_PREFIX)
