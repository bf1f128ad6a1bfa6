"""Who listens on a port of this machine, or has a file open, as far as the system tells: our own user's processes."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"
LONGEST = 60


class Listener(NamedTuple):
    pid: int
    command: tuple[str, ...]

    @property
    def cluster_directory(self) -> Path | None:
        """Of the cluster whose node this is, if `klamm up` started it: the directory above the node's own."""
        words = self.command
        if "klamm" not in words or "broker" not in words or "--dir" not in words[:-1]:
            return None
        directory = Path(words[words.index("--dir") + 1])
        return directory.parent if directory.name.startswith("node-") else None

    def __str__(self) -> str:
        text = shlex.join(self.command)
        return f"process {self.pid} ({text if len(text) <= LONGEST else text[:LONGEST] + '…'})"


def listener_on(port: int) -> Listener | None:
    """None where nobody does, or somebody whom we may not look at."""
    return _who_has({f"socket:[{inode}]" for inode in _inodes(port)})


def holder_of(file: Path) -> Listener | None:
    """Who has it open; None where nobody has, or somebody whom we may not look at."""
    return _who_has({str(file.resolve())})


def _who_has(names: Collection[str]) -> Listener | None:
    """What the system shows of an open descriptor is one of these."""
    if not names:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(each.readlink()) in names for each in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return Listener(int(process.name), tuple(filter(None, words)))
        except OSError:
            continue  # Somebody else's, or gone meanwhile.
    return None


def _inodes(port: int) -> set[str]:
    found = set()
    for table in TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
