"""Commands that have something to tidy up: whoever ends them with SIGTERM wants what Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from klamm.cli.saying import say


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """The first signal is a KeyboardInterrupt. Only the first: the second would find us at tidying up."""

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("tidying up ...")
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
