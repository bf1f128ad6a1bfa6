"""How far it is, on standard error: a line that changes, on a terminal and only when it takes long; for those that take
minutes, elsewhere a line now and then."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from klamm.cli.saying import is_terminal

FIRST_SECONDS = 1.0
EVERY_SECONDS = 0.2
LINE_SECONDS = 30.0
"""Where there is no terminal."""
USUAL_COLUMNS = 80
"""Of a terminal that does not say."""


class Progress:
    """`progress.show(lambda: "1,000 records")`, as often as one likes; the text is made only when it is shown."""

    def __init__(self, wanted: bool = True, lines: bool = False) -> None:
        """With `lines`, also where there is no terminal."""
        self._is_terminal = is_terminal(sys.stderr)
        self._is_shown = wanted and (self._is_terminal or (lines and sys.stderr is not None))
        self._every = EVERY_SECONDS if self._is_terminal else LINE_SECONDS
        self.began = time.monotonic()
        self._next = self.began + (FIRST_SECONDS if self._is_terminal else LINE_SECONDS)
        self._has_line = False

    @property
    def seconds(self) -> float:
        return max(time.monotonic() - self.began, 1e-6)

    def show(self, text: Callable[[], str]) -> None:
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._has_line = self._is_terminal
            line = f"\r\x1b[K{_cut(text())}" if self._is_terminal else f"{text()}\n"
            print(line, end="", file=sys.stderr, flush=True)

    @contextmanager
    def shown(self, text: Callable[[], str]) -> Iterator[None]:
        """By itself, for whoever is busy with something else meanwhile."""
        over = threading.Event()

        def show() -> None:
            while not over.wait(EVERY_SECONDS):
                self.show(text)

        thread = threading.Thread(target=show, name="progress", daemon=True)
        if self._is_shown:
            thread.start()
        try:
            yield
        finally:
            over.set()
            if self._is_shown:
                thread.join()
            self.clear()

    def clear(self) -> None:
        if self._has_line:
            self._has_line = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _cut(text: str) -> str:
    """Of a line that folds, only the last row could be taken back."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL_COLUMNS
    except OSError:
        return text
    return text if len(text) < columns else f"{text[: columns - 2]}…"
