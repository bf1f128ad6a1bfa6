"""Standard output of `klamm consume`: bytes, in whole, and for members of a group with a word when they are out.

Ctrl-C may come between the moment in which somebody sees a record and the one in which we note that it is written.
Python's signals reach the main thread alone, so another one writes and notes: a record that was seen is committed.
"""

import contextlib
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import FileIO
from queue import Empty, SimpleQueue

GRACE_SECONDS = 1.0
"""What was begun when Ctrl-C came may take so long; a pipe that nobody empties takes for ever."""
LOOK_SECONDS = 0.005
HEED_SECONDS = 0.1
"""A signal that comes right before a wait does not end it, nor one that another thread took: so no wait is long."""


@dataclass(slots=True)
class _Job:
    """Neither a lock nor a future: those are Python, and Ctrl-C in the middle of them leaves them locked."""

    text: bytes
    note: Callable[[], None]
    is_done: bool = False
    result: SimpleQueue[Exception | None] = field(default_factory=SimpleQueue)


def _result_of(job: _Job) -> Exception | None:
    while True:
        with contextlib.suppress(Empty):
            return job.result.get(timeout=HEED_SECONDS)


class Output:
    """Unbuffered, and not `sys.stdout`: Python would wait for a thread that is stuck in it when it ends."""

    def __init__(self, descriptor: int) -> None:
        self._file = FileIO(descriptor, "w", closefd=False)
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def write(self, text: bytes) -> None:
        left = memoryview(text)
        while left:
            left = left[self._file.write(left) :]

    def write_and_note(self, text: bytes, note: Callable[[], None]) -> None:
        """`note` is called on another thread when all of it is out. After Ctrl-C that is waited for, within reason."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="output", daemon=True)
            self._thread.start()
        job = _Job(text, note)
        try:
            self._jobs.put(job)
            problem = _result_of(job)
        except KeyboardInterrupt:
            until = time.monotonic() + GRACE_SECONDS
            while not job.is_done and time.monotonic() < until:
                time.sleep(LOOK_SECONDS)
            raise
        if problem is not None:
            raise problem

    def has_nobody_to_read_it(self) -> bool:
        """`| head` has gone: nothing would tell us before the next record comes."""
        with contextlib.suppress(OSError, ValueError):
            poll = select.poll()
            poll.register(self._file.fileno(), 0)
            return any(event & select.POLLERR for _, event in poll.poll(0))
        return False

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            problem: Exception | None = None
            try:
                self.write(job.text)
                job.note()
            except Exception as raised:
                problem = raised
            job.is_done = True
            job.result.put(problem)
