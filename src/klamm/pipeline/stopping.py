"""SIGINT and SIGTERM end a run as long as it has not changed anything. From then on the first asks it to stop after its
batch, and the second ends it at once.

That is safe: it is no worse than a crash, and after a crash the next run repeats the batch.
"""

import os
import signal
import sys
from collections.abc import Callable
from threading import Timer, main_thread
from typing import Any

INTERRUPTED = 130
AGAIN_SECONDS = 0.02


class Interrupted(KeyboardInterrupt):
    """Before anything was changed."""

    def __str__(self) -> str:
        return "interrupted before the first batch: nothing was read or written"


class StopSignals:
    def __init__(self, say: Callable[[str], None], at_end: Callable[[], None] = lambda: None) -> None:
        """`at_end` is called before the process ends at once, to leave the terminal as it was."""
        self._say, self._at_end = say, at_end
        self._before: dict[int, Any] = {}
        self._has_begun = False
        self.were_seen = False

    def __enter__(self) -> "StopSignals":
        self._hook, sys.unraisablehook = sys.unraisablehook, self._swallowed
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._hook
        if self.were_seen and not self._has_begun:
            # Whatever else there is to say now is about what was interrupted.
            raise Interrupted from None

    def begin(self) -> None:
        """From here on things are changed, and none of them by half."""
        if self.were_seen:
            # Somebody who catches everything has caught it.
            raise Interrupted
        self._has_begun = True

    def _ask(self, number: int, frame: object) -> None:
        if not self._has_begun:
            # Once: the second would find us at tidying up.
            if not self.were_seen:
                self.were_seen = True
                raise Interrupted
            return
        if self.were_seen:
            self._at_end()
            self._say("ended at once; the next run repeats the batch")
            os._exit(INTERRUPTED)
        self.were_seen = True
        self._say("stopping after this batch ... (once more: at once)")

    def _swallowed(self, unraisable: "sys.UnraisableHookArgs") -> None:
        """What removes an object cannot be interrupted, and Spark's are many: once more in a moment."""
        if not isinstance(unraisable.exc_value, Interrupted):
            self._hook(unraisable)
            return
        self.were_seen = False
        again = Timer(AGAIN_SECONDS, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
        again.daemon = True
        again.start()
