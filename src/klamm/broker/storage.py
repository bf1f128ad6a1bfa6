"""How this broker's disk does: whether it is full, and whether it fails.

A full disk breaks no promise: what it refused was not written, and the logs go on when there is room. But somebody has
to make that room, so it is an error, told once when it begins and once when it is over, and the node is not ready until
then. It begins with the first write that is refused, or when no room is left, and ends when there is some again and
nothing has been refused since the last look.

What fails otherwise, a read that the disk refuses for one, is told once, and again after a minute without. Partitions
that go offline by it tell that for themselves.
"""

from collections.abc import Iterable, Iterator

from klamm.broker.facts import StorageFailing, StorageFull, StorageHasRoom, StorageQuiet
from klamm.facts import Tell
from klamm.ids import Now
from klamm.log.files import FULL_BELOW_BYTES, DiskFailed, DiskFull, Files
from klamm.partition.partition import Partition

LOOK_INTERVAL_MS = 5_000.0
QUIET_LOOKS = 12


def why_all_are_offline(partitions: Iterable[Partition]) -> str | None:
    """One of the reasons, if no log here takes anything. One that failed among others is another matter."""
    why = None
    for partition in partitions:
        if partition.failure is None:
            return None
        why = partition.failure
    return why


class Storage:
    __slots__ = ("_files", "_quiet_looks", "_refused_at_last_look", "_tell", "failing", "failures", "full", "refused")

    def __init__(self, files: Files, tell: Tell) -> None:
        self._files = files
        self._tell = tell
        self.full: str | None = None
        """What was refused first, while the disk is full."""
        self.failing: str | None = None
        """What failed last, unless that is a while ago."""
        self.refused = 0
        """Writes for which there was no room."""
        self.failures = 0
        """Whatever else the disk refused."""
        self._refused_at_last_look = 0
        self._quiet_looks = 0

    def note(self, error: DiskFailed) -> None:
        """The disk refused something."""
        if isinstance(error, DiskFull):
            self.refused += 1
            self._become_full(str(error))
            return
        self.failures += 1
        self._quiet_looks = 0
        if self.failing is None:
            self._tell(StorageFailing(str(error)))
        self.failing = str(error)

    def watch(self, now: Now) -> Iterator[float]:
        """A chore."""
        self._look_at_failures()
        try:
            space = self._files.space()
        except DiskFailed as error:
            self.note(error)
            return
        if self.full is None and space.free_bytes < FULL_BELOW_BYTES:
            self._become_full(f"{space.free_bytes} of {space.total_bytes} bytes are free")
        elif self.full is not None and space.has_room and self.refused == self._refused_at_last_look:
            self.full = None
            self._tell(StorageHasRoom(space.free_bytes))
        self._refused_at_last_look = self.refused
        yield 0.0

    def _become_full(self, why: str) -> None:
        if self.full is None:
            self.full = why
            self._tell(StorageFull(why))

    def _look_at_failures(self) -> None:
        self._quiet_looks += 1
        if self.failing is not None and self._quiet_looks > QUIET_LOOKS:
            self.failing = None
            self._tell(StorageQuiet(self.failures))
