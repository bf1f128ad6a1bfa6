"""How far it is, on standard error: a line that changes, on a terminal and only when it takes long."""

import sys
import time
from collections.abc import Callable

FIRST_SECONDS = 1.0
EVERY_SECONDS = 0.2


class Progress:
    """`progress.show(lambda: "1,000 records")`, as often as one likes; the text is made only when it is shown."""

    def __init__(self, wanted: bool = True) -> None:
        self._is_shown = wanted and sys.stderr.isatty()
        self.began = time.monotonic()
        self._next = self.began + FIRST_SECONDS
        self._has_line = False

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.began, 1e-6)

    def show(self, text: Callable[[], str]) -> None:
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_SECONDS
            self._has_line = True
            print(f"\r\x1b[K{text()}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._has_line:
            self._has_line = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
