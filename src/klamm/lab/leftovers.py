"""The directories of experiments: whose they are, and what is left of those whose owner was killed.

A directory says which process runs its experiment. If that one is no more, its nodes are killed and it is removed. One
that is kept on purpose belongs to nobody, and is left alone; so is what another user put there.
"""

import contextlib
import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

from klamm.local.cluster import LocalCluster
from klamm.local.processes import Process, process_of, state_of
from klamm.local.record import read_record

PREFIX = "klamm-lab-"
OWNER = "owner.json"


def own(directory: Path) -> None:
    (directory / OWNER).write_text(json.dumps(process_of(os.getpid())._asdict()), encoding="utf-8")


def disown(directory: Path) -> None:
    (directory / OWNER).unlink(missing_ok=True)


def remove(cluster: LocalCluster) -> None:
    """Its nodes are killed, and nothing is left of it."""
    record = read_record(cluster.directory)
    if record is not None:
        cluster.kill(node.node_id for node in record.nodes)
        cluster.states()  # Those that are our children are waited for.
    shutil.rmtree(cluster.directory, ignore_errors=True)


def tidy_up_after_others() -> list[Path]:
    """What experiments left behind that ended without tidying up is removed; where it was."""
    found = []
    for directory in sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")):
        if _is_ours(directory) and _is_abandoned(directory):
            remove(LocalCluster(directory))
            found.append(directory)
    return found


def _is_ours(directory: Path) -> bool:
    """Made by this user, and itself a directory: a link would have us remove what it leads to."""
    with contextlib.suppress(FileNotFoundError):
        found = directory.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return False


def _is_abandoned(directory: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, TypeError):
        owner = Process(**json.loads((directory / OWNER).read_text(encoding="utf-8")))
        return state_of(owner) == "dead"
    return False
