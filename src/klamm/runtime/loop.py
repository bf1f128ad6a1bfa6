"""One thread's event loop: ready descriptors, one alarm per owner, and calls from other threads.

It is epoll and nothing more. A node never suspends, so there is nothing a coroutine could wait for; what asyncio adds
was measured as 40 ms of start-up and ten megabytes (docs/decisions/0001). Several nodes can share one loop.

Order within a turn: first everything that is ready (sockets, calls from other threads), then alarms, then what was to
be done at the end of this turn. After the process itself has stalled it therefore hears what others said meanwhile
before it acts on a deadline.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from klamm.runtime.alertness import Alertness

OnReady: TypeAlias = Callable[[int], None]

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
BROKEN = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
HUNG_UP = select.EPOLLRDHUP
"""The other side will send nothing more. Who reads hears of it anyway."""
NEVER = float("inf")


def monotonic_ms() -> float:
    return time.monotonic() * 1000.0


class Alarm:
    """One moment somebody wants to be called at; moving it is one assignment."""

    __slots__ = ("at_ms", "call")

    def __init__(self, call: Callable[[], None]) -> None:
        self.at_ms = NEVER
        self.call = call


class Loop:
    def __init__(self, alertness: Alertness | None = None) -> None:
        """Without alertness it sleeps whenever nothing is ready, as it should where it shares the interpreter."""
        self._epoll = select.epoll()
        self._alertness = alertness
        self._ready: dict[int, OnReady] = {}
        self._sending: set[int] = set()
        self._first: set[int] = set()
        self._alarms: list[Alarm] = []
        self._calls: deque[Callable[[], None]] = deque()
        self._at_end: list[Callable[[], None]] = []
        self._stopped = False
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.watch(self._bell, READABLE, self._ring_heard)

    def watch(self, descriptor: int, interest: int, on_ready: OnReady, *, first: bool = False) -> None:
        """Call `on_ready(events)` whenever the descriptor is ready for what interests us, or broken; before others that
        are ready at the same time, if it is to be first."""
        self._ready[descriptor] = on_ready
        if first:
            self._first.add(descriptor)
        self._epoll.register(descriptor, interest)

    def change(self, descriptor: int, interest: int) -> None:
        self._epoll.modify(descriptor, interest)
        if interest & WRITABLE:
            self._sending.add(descriptor)
        else:
            self._sending.discard(descriptor)

    def forget(self, descriptor: int) -> None:
        del self._ready[descriptor]
        self._first.discard(descriptor)
        self._sending.discard(descriptor)
        self._epoll.unregister(descriptor)

    def alarm(self, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(call)
        self._alarms.append(alarm)
        return alarm

    def drop_alarm(self, alarm: Alarm) -> None:
        self._alarms.remove(alarm)

    def call_soon(self, call: Callable[[], None]) -> None:
        """Call from the loop's thread, soon. May be used from any thread and from signal handlers."""
        self._calls.append(call)
        os.eventfd_write(self._bell, 1)

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        """Call once everything that is ready now has been heard. In the loop's thread only."""
        self._at_end.append(call)

    def stop(self) -> None:
        self.call_soon(self._stop)

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        signal.signal(number, lambda *_: self.call_soon(call))

    def run(self) -> None:
        poll, ready, alertness = self._epoll.poll, self._ready, self._alertness
        while not self._stopped:
            if alertness is None:
                happened = poll(self._timeout())
            else:
                happened = alertness.wait(poll, self._timeout(), may_stay_awake=not self._sending)
            if len(happened) > 1 and self._first:
                happened.sort(key=self._order)
            for descriptor, events in happened:
                on_ready = ready.get(descriptor)
                if on_ready is not None:
                    on_ready(events)
            self._ring_due_alarms()
            if self._at_end:
                calls, self._at_end = self._at_end, []
                for call in calls:
                    call()

    def run_calls(self) -> None:
        """What other threads asked for before the loop ended."""
        while self._calls:
            self._calls.popleft()()

    def close(self) -> None:
        assert threading.current_thread() is threading.main_thread() or self._stopped
        self._epoll.close()
        with contextlib.suppress(OSError):
            os.close(self._bell)

    def _timeout(self) -> float | None:
        if self._at_end:
            return 0.0
        at_ms = min((alarm.at_ms for alarm in self._alarms), default=NEVER)
        return None if at_ms == NEVER else max(0.0, (at_ms - monotonic_ms()) / 1000.0)

    def _order(self, event: tuple[int, int]) -> bool:
        return event[0] not in self._first

    def _ring_due_alarms(self) -> None:
        now_ms = monotonic_ms()
        for alarm in tuple(self._alarms):
            if alarm.at_ms <= now_ms:
                alarm.at_ms = NEVER
                alarm.call()

    def _ring_heard(self, events: int) -> None:
        os.eventfd_read(self._bell)
        # Those that come meanwhile ring again, and have their turn after the sockets.
        for _ in range(len(self._calls)):
            if not self._calls:
                break
            self._calls.popleft()()

    def _stop(self) -> None:
        self._stopped = True
