"""Whether anybody of the cluster answers, looked at beside a run: a task that waits for brokers says nothing itself.

Tasks try for a while before they fail, most often until the brokers are back. Whoever watches shall know why nothing
moves meanwhile. One broker that can be dialled is enough: the tasks find the others.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence

from klamm.pipeline.kafka.connection import Address
from klamm.pipeline.kafka.settings import addresses

LOOK_SECONDS = 3.0
DIAL_SECONDS = 2.0


class Reaching:
    """A context manager: looks now and then, in a thread of its own, and says what has changed."""

    def __init__(self, bootstrap: str, say: Callable[[str], None], look_seconds: float = LOOK_SECONDS) -> None:
        self._bootstrap = bootstrap
        self._addresses = addresses(bootstrap)
        self._say = say
        self._look_seconds = look_seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="reaching", daemon=True)

    def __enter__(self) -> "Reaching":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()

    def _look(self) -> None:
        silent_since: float | None = None
        while not self._over.wait(self._look_seconds):
            if _is_reached(self._addresses):
                if silent_since is not None:
                    self._tell(f"the cluster answers again, after {time.monotonic() - silent_since:.0f} s")
                silent_since = None
            elif silent_since is None:
                silent_since = time.monotonic()
                self._tell(f"no broker answers at {self._bootstrap}. The batch waits for them, and fails in the end")

    def _tell(self, text: str) -> None:
        if not self._over.is_set():
            self._say(text)


def _is_reached(known: Sequence[Address]) -> bool:
    for address in known:
        try:
            socket.create_connection((address.host, address.port), DIAL_SECONDS).close()
        except OSError:
            continue
        return True
    return False
