"""The first SIGINT or SIGTERM asks a run to stop after its batch, the second ends it at once.

That is safe: it is no worse than a crash, and after a crash the next run repeats the batch.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

INTERRUPTED = 130


class StopSignals:
    def __init__(self, say: Callable[[str], None], at_end: Callable[[], None] = lambda: None) -> None:
        """`at_end` is called before the process ends at once, to leave the terminal as it was."""
        self._say, self._at_end = say, at_end
        self._before: dict[int, Any] = {}
        self.were_seen = False

    def __enter__(self) -> "StopSignals":
        self.listen()
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self) -> None:
        """Once more after Spark's start: it takes SIGINT for itself, and would cancel the batch."""
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.signal(number, self._ask)
            self._before.setdefault(number, before)

    def _ask(self, number: int, frame: object) -> None:
        if self.were_seen:
            self._at_end()
            self._say("ended at once; the next run repeats the batch")
            os._exit(INTERRUPTED)
        self.were_seen = True
        self._say("stopping after this batch ... (once more: at once)")
