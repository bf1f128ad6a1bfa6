"""Waiting for what takes effect a moment later: ask until it is so, within a bound."""

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], bool], what: str, within_seconds: float = 15.0) -> None:
    """Asks again and again; fails with `what` was waited for."""
    deadline = time.monotonic() + within_seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_seconds:.0f} s: {what}"
        time.sleep(0.02)
