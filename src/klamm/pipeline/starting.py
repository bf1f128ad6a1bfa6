"""Spark's start can be interrupted, and then leaves no Java behind.

PySpark does not foresee that. Until Java answers, nobody but a function of PySpark's knows its process. And at the end
of its start PySpark takes SIGINT for itself, to cancel jobs: there were none, and the answer to Ctrl-C was two stack
traces. So PySpark gets a `Popen` that is remembered and a `signal` that does nothing, for as long as it starts.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from subprocess import Popen, TimeoutExpired
from types import SimpleNamespace
from typing import Any

ENDING_SECONDS = 5.0
"""That Java has to remove its temporary directories."""


@contextmanager
def interruptible() -> Iterator[None]:
    launching: Any = import_module("pyspark.java_gateway")
    context: Any = import_module("pyspark.core.context")
    started: list[Popen[bytes]] = []

    class Remembered(Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            # Before it is there: an interruption may come before this returns.
            started.append(self)
            super().__init__(*arguments, **options)

    popen, signals = launching.Popen, context.signal
    launching.Popen = Remembered
    context.signal = SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *ignored: None)
    try:
        yield
    except KeyboardInterrupt:
        for java in started:
            end(java)
        raise
    finally:
        launching.Popen, context.signal = popen, signals


def end(java: "Popen[bytes]") -> None:
    """It stands in a session of its own, with whatever starts it. One that was interrupted in the middle of an answer
    cannot be asked for anything any more."""
    if getattr(java, "pid", None) is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(java.pid, number)
        except ProcessLookupError:
            with suppress(ProcessLookupError):
                java.send_signal(number)
        with suppress(TimeoutExpired):
            java.wait(ENDING_SECONDS)
            return
