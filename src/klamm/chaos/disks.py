"""A small disk a node, in memory (tmpfs), that can be filled to its last byte, and emptied again.

The disk is mounted on the node's directory. Nothing but the node and our ballast is on it, so a full one is nobody
else's trouble, and it never takes more memory than its size. Needs root and the right to mount.
"""

import errno
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from klamm.chaos.commands import attempt, run
from klamm.chaos.problems import NoDisks

SIZE_MEBIBYTES = 128
BALLAST = "ballast"
MOUNTS = Path("/proc/self/mounts")
CHUNK = 4096


class Disks:
    def __init__(self, directories: Iterable[Path]) -> None:
        self._directories = list(directories)

    def __enter__(self) -> "Disks":
        if os.geteuid() != 0 or shutil.which("mount") is None:
            raise NoDisks("needs root, and mount")
        try:
            for directory in self._directories:
                directory.mkdir(parents=True, exist_ok=True)
                run("mount", "-t", "tmpfs", "-o", f"size={SIZE_MEBIBYTES}m", "klamm-chaos", str(directory))
        except subprocess.CalledProcessError as problem:
            self.unmount()
            raise NoDisks(f"no disks can be mounted here: {problem.stderr.strip()}") from problem
        except BaseException:
            self.unmount()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.unmount()

    def fill(self, number: int) -> None:
        """Until there is no page left; the last pages of files that are there may have room for some bytes."""
        descriptor = os.open(self._ballast(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            space = os.statvfs(descriptor)
            position = os.fstat(descriptor).st_size
            with _full_is_fine():
                os.posix_fallocate(descriptor, position, max(1, space.f_bavail * space.f_frsize))
            with _full_is_fine():
                for _ in range((SIZE_MEBIBYTES << 20) // CHUNK):
                    os.write(descriptor, bytes(CHUNK))
        finally:
            os.close(descriptor)

    def empty(self, number: int) -> None:
        self._ballast(number).unlink(missing_ok=True)

    def keep(self) -> None:
        """What is on the disks stays when they go."""
        for number, directory in enumerate(self._directories):
            self.empty(number)
            copy = directory.with_name(f"{directory.name}.kept")
            shutil.copytree(directory, copy)
            unmount(directory)
            directory.rmdir()
            copy.rename(directory)

    def unmount(self) -> None:
        for directory in self._directories:
            unmount(directory)

    def _ballast(self, number: int) -> Path:
        return self._directories[number] / BALLAST


def unmount(directory: Path) -> None:
    """If something is mounted there. Lazily, where a process that is about to end still looks at it."""
    if str(directory) in mounted_under(directory):
        _ = attempt("umount", str(directory)) or attempt("umount", "--lazy", str(directory))


def mounted_under(directory: Path) -> list[str]:
    """Where disks are mounted in this directory, or on it."""
    places = [line.split()[1] for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    return [place for place in places if place == str(directory) or place.startswith(f"{directory}/")]


@contextmanager
def _full_is_fine() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
