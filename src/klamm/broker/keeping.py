"""The bytes of requests that are kept while work on them goes on: they have a bound.

What a step was shown is gone when it ends, so whoever needs it longer copies it, and counts it here. Over the bound
nothing more is kept: such requests stay with their connections, which are not read meanwhile, and are offered again
when there is room.
"""

from collections import deque
from collections.abc import Callable

MOST_BYTES = 32 << 20
WOKEN_AT_ONCE = 32


class Keeping:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._outside: deque[Callable[[], None]] = deque()
        self.kept_bytes = 0

    @property
    def has_room(self) -> bool:
        return self.kept_bytes < self._most_bytes

    def wait(self, wake: Callable[[], None]) -> None:
        """`wake` is called once when there is room again; it may find that others were faster."""
        self._outside.append(wake)

    def keep(self, size: int) -> None:
        self.kept_bytes += size

    def let_go(self, size: int) -> None:
        self.kept_bytes -= size
        # Some of them may be gone by now, so none waits any longer once nothing is kept.
        most = WOKEN_AT_ONCE if self.kept_bytes else len(self._outside)
        if self.has_room:
            for _ in range(min(most, len(self._outside))):
                self._outside.popleft()()
