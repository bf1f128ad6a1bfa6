"""The members of consumer groups as an experiment has them: processes that are started, killed, and listened to."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable

from klamm.lab.problems import LabError
from klamm.lab.stage import wait_until

GONE_SECONDS = 10.0


class Member:
    def __init__(self, name: str, bootstrap: str, topic: str, group: str, session_ms: int) -> None:
        self.name = name
        self.owned: set[int] = set()
        """What it believes to be its own now."""
        self.assignments = 0
        """How often it was given its share, which may be nothing."""
        self.read: list[tuple[int, int]] = []
        """Partition and offset of all that it has read and committed."""
        command = [sys.executable, "-P", "-m", "klamm.lab.member", bootstrap, topic, group, name, str(session_ms)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(GONE_SECONDS)
        self._listener.join(GONE_SECONDS)
        self.owned = set()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # Who is killed may be cut off within a line.
                    self._hear(*json.loads(line))

    def _hear(self, what: str, said: list[list[int]] | list[int]) -> None:
        if what == "read":
            self.read += [(place[0], place[1]) for place in said if isinstance(place, list)]
            return
        partitions = {each for each in said if isinstance(each, int)}
        self.owned = self.owned | partitions if what == "assigned" else self.owned - partitions
        self.assignments += what == "assigned"


class Gathering:
    """One group; a context manager, left by all its members being killed."""

    def __init__(self, bootstrap: str, topic: str, group: str, partitions: int, session_ms: int) -> None:
        self._bootstrap, self._topic, self.group = bootstrap, topic, group
        self._partitions, self._session_ms = partitions, session_ms
        self.members: list[Member] = []

    def __enter__(self) -> "Gathering":
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()

    def join(self, names: Iterable[str]) -> None:
        for name in names:
            self.members.append(Member(name, self._bootstrap, self._topic, self.group, self._session_ms))

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.runs]

    def shares(self) -> dict[str, tuple[int, ...]]:
        """Who owns what, of those that run."""
        return {member.name: tuple(sorted(member.owned)) for member in self.running}

    def wait_shared(self, seconds: float) -> None:
        """Until everybody has been given a share and all partitions are owned, each by one."""
        everybody = len(self.running)

        def is_shared() -> bool:
            if len(self.running) != everybody:
                raise LabError(f"a member of group {self.group} ended by itself")
            owners = Counter(partition for member in self.running for partition in member.owned)
            return all(member.assignments for member in self.running) and owners == Counter(range(self._partitions))

        wait_until(is_shared, f"{everybody} members share {self._partitions} partitions", seconds)

    def reads(self) -> Counter[tuple[int, int]]:
        """How often each record was read, by anybody."""
        return Counter(place for member in self.members for place in list(member.read))
