"""A node in the real world: what happens on sockets, disk and clock becomes events, and effects are carried out.

Everything but flushes and removals happens in the loop's thread. A flush waits for the disk in a thread of its own, one
at a time, with the descriptors pinned meanwhile; its end comes back as a `Flushed` event. Removals (`removal.py`) are
waited for by nobody.
"""

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue

from klamm.facts import Tell
from klamm.ids import Now
from klamm.metadata.image import Endpoint
from klamm.node.effects import Close, Dial, Effect, Flush, Pause, Resume, Send, Serve, Stop, Wake, Yield
from klamm.node.events import Closed, Drained, Event, Flushed, Opened, Received, Refused, Woke, Yielded
from klamm.node.node import Node
from klamm.node.served import Served, Times
from klamm.runtime.dialer import Dialer, MakeDialer
from klamm.runtime.facts import FileStays
from klamm.runtime.files import Pinned, RealFiles
from klamm.runtime.loop import Loop
from klamm.runtime.server import Limits, Server


def now() -> Now:
    return Now(time.monotonic() * 1000.0, time.time_ns() // 1_000_000)


class Driver:
    def __init__(
        self,
        node: Node,
        files: RealFiles,
        loop: Loop,
        limits: Limits,
        tell: Tell,
        make_dialer: MakeDialer = Dialer,
    ) -> None:
        self.node = node
        self.loop = loop
        self.server = Server(loop, self, limits, tell)
        self._dialer = make_dialer(loop, self)
        self._files = files
        self._alarm = loop.alarm(self._woke)
        self._flusher = Flusher(self)
        files.on_not_removed = lambda path, reason: loop.call_soon(partial(tell, FileStays(path, reason)))
        self._left = 0
        self.counts: Mapping[int, Served] = {}
        """How the node answered requests, by API; given by who knows the node's parts."""
        self._took_us = 0
        self.steps = Times()
        """How long steps took, with what they had done."""
        self._acts: deque[Callable[[Now], list[Effect]]] = deque()
        self._is_acting = False
        self.is_down = False
        self.on_serve: Callable[[], None] = lambda: None
        """Called when clients are answered."""
        self.on_stop: Callable[[], None] = lambda: None
        """Called when nothing keeps this node any more, after `begin_to_stop`."""

    def start(self, endpoint: Endpoint) -> None:
        """Open what the disk holds. After this the node may be connected to, at this endpoint."""
        self._run(lambda now: self.node.start(endpoint, now))

    def begin_to_stop(self) -> None:
        """Hand over what this node leads; `on_stop` is called when that is done."""
        self._run(self.node.begin_to_stop)

    def stop(self) -> bool:
        """Stop: no more connections, everything on disk, and the marker that says so. Whether all of that was done."""
        self._let_go()
        try:
            return self.node.stop()
        finally:
            self._files.close()

    def abandon(self) -> None:
        """As if the process were killed: nothing more is sent, nothing more is written."""
        self.is_down = True
        self._let_go()
        self._files.close()

    def _let_go(self) -> None:
        self.server.close()
        self._dialer.close()
        self._flusher.stop()
        self._files.remover.stop()
        # How the last flush ended: a failed one must not be tried again and called a success.
        self.loop.run_calls()
        self.loop.drop_alarm(self._alarm)
        self.is_down = True

    def step(self, event: Event) -> None:
        """One event, and what follows from it."""
        self._run(lambda now: self.node.step(event, now))

    def _run(self, act: Callable[[Now], list[Effect]]) -> None:
        """Let the node act, and carry out what it wants. What happens meanwhile (a connection that breaks when
        something is sent) has its turn afterwards: its effects must not be overtaken by older ones."""
        self._acts.append(act)
        if self._is_acting:
            return
        self._is_acting = True
        steps = self.steps
        try:
            while self._acts and not self.is_down:
                began = now()
                self._perform(self._acts.popleft()(began))
                # As `note` does, without the call.
                self._took_us = took_us = int(time.monotonic() * 1_000_000.0 - began.monotonic_ms * 1000.0)
                steps.buckets[took_us.bit_length()] += 1
                steps.total_us += took_us
        finally:
            self._is_acting = False

    # What the sockets say.

    def opened(self, connection: int, peer: str) -> None:
        self.step(Opened(connection, peer))

    def dialed(self, connection: int, sock: socket.socket) -> None:
        try:
            ip, port = sock.getpeername()[:2]
        except OSError:
            # It was there for a moment.
            sock.close()
            self.refused(connection, False)
            return
        self.server.adopt(connection, sock, ip, port)

    def refused(self, connection: int, nobody_listens: bool) -> None:
        self.step(Refused(connection, nobody_listens))

    def received(self, connection: int, frames: Sequence[memoryview]) -> int:
        self._left = 0
        if connection < 0:
            self.step(Received(connection, frames))
            return self._left
        # Requests that come together are of one kind, but for a client's first few; those are timed by the first.
        served = self.counts.get(frames[0][1])
        before = 0 if served is None else served.answered
        self.step(Received(connection, frames))
        if served is None:
            served = self.counts.get(frames[0][1])
        if served is not None and served.answered > before:
            served.times.note(self._took_us, served.answered - before)
        return self._left

    def drained(self, connection: int) -> None:
        self.step(Drained(connection))

    def closed(self, connection: int) -> None:
        self.step(Closed(connection))

    def _woke(self) -> None:
        self.step(Woke())

    def _yielded(self) -> None:
        self.step(Yielded())

    def _perform(self, effects: Sequence[Effect]) -> None:
        server = self.server
        for effect in effects:
            if effect.__class__ is Send:
                server.send(effect.connection, effect.pieces)
            elif effect.__class__ is Wake:
                self._alarm.at_ms = effect.at_ms
            elif effect.__class__ is Yield:
                self.loop.at_end_of_turn(self._yielded)
            elif effect.__class__ is Flush:
                self._flush(effect)
            elif effect.__class__ is Pause:
                self._left = effect.left
                server.pause(effect.connection)
            elif effect.__class__ is Resume:
                server.resume(effect.connection)
            elif effect.__class__ is Dial:
                self._dialer.dial(effect.connection, effect.host, effect.port)
            elif effect.__class__ is Serve:
                self.on_serve()
            elif effect.__class__ is Stop:
                self.on_stop()
            else:
                assert effect.__class__ is Close
                if not self._dialer.call_off(effect.connection):
                    server.close_after_sending(effect.connection)

    def _flush(self, effect: Flush) -> None:
        self._flusher.flush(effect.token, self._files.pinned(effect.groups))


class Flusher:
    """The thread that waits for the disk. It starts with the first flush."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._wishes: SimpleQueue[tuple[int, Pinned] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def flush(self, token: int, pinned: Pinned) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flush", daemon=True)
            self._thread.start()
        self._wishes.put((token, pinned))

    def stop(self) -> None:
        if self._thread is not None:
            self._wishes.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (wish := self._wishes.get()) is not None:
            token, pinned = wish
            pinned.sync()
            self._driver.loop.call_soon(partial(self._done, token, pinned))

    def _done(self, token: int, pinned: Pinned) -> None:
        failures = {number: str(error) for number, error in pinned.let_go().items()}
        self._driver.step(Flushed(token, failures))
