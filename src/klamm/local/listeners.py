"""Who listens on a port of this machine, or has a node's data, as far as the system tells: our own user's processes."""

import shlex
from collections.abc import Collection, Iterator
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
        directory = self._data
        return directory.parent if directory is not None and directory.name.startswith("node-") else None

    def is_node_of(self, directory: Path) -> bool:
        return self._data == directory

    @property
    def _data(self) -> Path | None:
        """Of a broker, as it was told."""
        words = self.command
        if "klamm" not in words or "broker" not in words or "--dir" not in words[:-1]:
            return None
        return Path(words[words.index("--dir") + 1])

    def __str__(self) -> str:
        text = shlex.join(self.command)
        return f"process {self.pid} ({text if len(text) <= LONGEST else text[:LONGEST] + '…'})"


def listener_on(port: int) -> Listener | None:
    """None where nobody does, or somebody whom we may not look at."""
    return next(_who_have({f"socket:[{inode}]" for inode in _inodes(port)}), None)


def cluster_on(port: int) -> Path | None:
    """The directory of the cluster that has this port."""
    found = listener_on(port)
    return None if found is None else found.cluster_directory


def node_in(directory: Path, lock: str) -> Listener | None:
    """The process of the node whose data this is: it has the lock open, and others may look at that too. None where
    there is none, or somebody whom we may not look at."""
    return next((each for each in _who_have({str((directory / lock).resolve())}) if each.is_node_of(directory)), None)


def _who_have(names: Collection[str]) -> Iterator[Listener]:
    """What the system shows of an open descriptor is one of these."""
    for process in Path("/proc").glob("[0-9]*") if names else ():
        try:
            if any(str(each.readlink()) in names for each in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield Listener(int(process.name), tuple(filter(None, words)))
        except OSError:
            continue  # Somebody else's, or gone meanwhile.


def _inodes(port: int) -> set[str]:
    found = set()
    for table in TABLES:
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(fields[9])
    return found
