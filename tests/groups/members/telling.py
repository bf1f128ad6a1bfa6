"""What a member is asked on its command line, and what it tells: one JSON line for everything that happens to it.

Every line has the time of the machine's one monotonic clock, so that what several members tell can be put in order. A
member that was told to go (SIGTERM) commits, leaves and says so.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    parser.add_argument("--assignor", default="range")
    parser.add_argument("--instance")
    parser.add_argument("--client-id", default="member")
    parser.add_argument("--session-ms", type=int, default=6000)
    parser.add_argument("--commit-every-ms", type=int, default=0)
    return parser.parse_args()


def tell(what: str, **more: Any) -> None:
    """At once: what is still in a buffer when a member is killed would never have been said."""
    sys.stdout.write(json.dumps({"what": what, "at": time.monotonic(), **more}) + "\n")
    sys.stdout.flush()


class Going:
    """Whether the member was told to go."""

    def __init__(self) -> None:
        self.now = False
        signal.signal(signal.SIGTERM, self._told)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _told(self, *_: object) -> None:
        self.now = True


class Handled:
    """What was handled and is not committed yet: partition to the next offset."""

    def __init__(self, commit_every_ms: int) -> None:
        self.uncommitted: dict[int, int] = {}
        self._every_seconds = commit_every_ms / 1000
        self._last = time.monotonic()

    def handle(self, records: Iterable[tuple[int, int]]) -> None:
        """Tells of partitions and offsets, as runs."""
        runs: dict[int, list[list[int]]] = {}
        for partition, offset in records:
            known = runs.setdefault(partition, [])
            if known and known[-1][1] == offset - 1:
                known[-1][1] = offset
            else:
                known.append([offset, offset])
        for partition, several in runs.items():
            for first, last in several:
                tell("handled", partition=partition, first=first, last=last)
            self.uncommitted[partition] = several[-1][1] + 1

    def is_due(self) -> bool:
        return bool(self.uncommitted) and time.monotonic() - self._last >= self._every_seconds

    def committed(self, offsets: dict[int, int]) -> None:
        tell("committed", offsets=offsets)
        self._last = time.monotonic()
        for partition, offset in offsets.items():
            if self.uncommitted.get(partition) == offset:
                del self.uncommitted[partition]

    def refused(self, why: object) -> None:
        """The commit did not count; whoever has the partitions now handles these records again."""
        self.put_off(why)
        self.uncommitted.clear()

    def put_off(self, why: object) -> None:
        """The commit did not count, and is tried again."""
        tell("refused", why=str(why)[:200], offsets=self.uncommitted)
        self._last = time.monotonic()

    def forget(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self.uncommitted.pop(partition, None)

    def forget_all_but(self, partitions: Iterable[int]) -> None:
        self.forget(self.uncommitted.keys() - set(partitions))
