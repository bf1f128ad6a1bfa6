"""A loop in a thread of its own, which others ask to do things.

Whoever asks gets a future. What breaks inside the loop ends the thread, and everybody who waits, or asks later, hears
why: nothing waits for a thread that is gone.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from klamm.runtime.loop import Loop

T = TypeVar("T")


class LoopFailed(RuntimeError):  # noqa: N818
    """The thread ended by a mistake of ours, which is this one's cause."""


class LoopThread:
    def __init__(self, name: str) -> None:
        self.loop = Loop()
        self.ended = threading.Event()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def asked(self, begin: Callable[[Callable[[T], None]], None]) -> "Future[T]":
        """Call `begin` in the loop's thread; what it hands to its argument, then or later, is the result."""
        future: Future[T] = Future()
        with self._lock:
            if self.ended.is_set():
                raise self._told()
            self._waiting.add(future)
        self.loop.call_soon(lambda: self._begin(future, begin))
        return future

    def end(self) -> None:
        """End the thread, after everything that was asked before; LoopFailed if it did not live so long."""
        if not self.ended.is_set():
            self.loop.stop()
        self._thread.join()
        if self._failure is not None:
            raise self._told()
        self.loop.close()

    def _begin(self, future: "Future[T]", begin: Callable[[Callable[[T], None]], None]) -> None:
        try:
            begin(lambda result: self._settle(future, lambda: future.set_result(result)))
        except Exception as problem:
            reason = problem  # The name in the clause ends with it, and the call below may come later.
            self._settle(future, lambda: future.set_exception(reason))

    def _settle(self, future: "Future[T]", settle: Callable[[], None]) -> None:
        with self._lock:
            self._waiting.discard(future)
        settle()

    def _run(self) -> None:
        try:
            self.loop.run()
        except BaseException as failure:
            self._failure = failure
        with self._lock:
            self.ended.set()
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            future.set_exception(self._told())

    def _told(self) -> LoopFailed:
        told = LoopFailed("the cluster's thread has ended" + (f": {self._failure!r}" if self._failure else ""))
        told.__cause__ = self._failure
        return told
