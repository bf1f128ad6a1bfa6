"""Commands that have something to tidy up: whoever ends them, or closes their terminal, wants what Ctrl-C does."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from klamm.cli.saying import say


@contextmanager
def heard_afterwards() -> Iterator[None]:
    """A Ctrl-C in here is a KeyboardInterrupt at the end. In the middle of an import it may become another exception
    (where a class is made, Python 3.11 calls it a RuntimeError), or none."""
    heard: list[int] = []

    def note(number: int, frame: object) -> None:
        heard.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [number for number in numbers if signal.getsignal(number) is signal.default_int_handler]
    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in before:
            signal.signal(number, signal.default_int_handler)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """The first signal is a KeyboardInterrupt. Only the first: the second would find us at tidying up."""

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # Under nohup we outlive the terminal.
        numbers.append(signal.SIGHUP)

    def interrupt(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        with suppress(OSError):  # A terminal that was closed takes no more words.
            say("tidying up ...")
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
