"""Waits for whoever a page has left behind and who has ended since, as the first process of a machine does.

Where nobody does (in many containers), a broker that a page has ended would look alive to `kill -0` for ever.
"""

import contextlib
import ctypes
import os
import threading
import time
from pathlib import Path

SET_SUBREAPER = 36
LOOK_AGAIN_SECONDS = 0.05


def adopt() -> None:
    """From now on, orphans of this process's children are its own, and are waited for."""
    ctypes.CDLL(None).prctl(SET_SUBREAPER, 1, 0, 0, 0)
    threading.Thread(target=_wait_for_all, daemon=True).start()


def _wait_for_all() -> None:
    while True:
        for pid in _ended_orphans():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(LOOK_AGAIN_SECONDS)


def _ended_orphans() -> list[int]:
    """Children in state Z. Those that lead their group are children proper, for which somebody else waits."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if state == "Z" and int(parent) == os.getpid() and group != entry.name:
                    found.append(int(entry.name))
    return found
