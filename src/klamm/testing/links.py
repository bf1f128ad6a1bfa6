"""Links between nodes that can be cut and made slow, without root: the node that dials puts a relay in between.

Every connection between two nodes was dialled by one of them. So it is enough if each node does to the connections it
dials what the link is supposed to do: pass on, pass on later, pass on nothing. A link that is cut is silent, as a
network that swallows everything: nobody hears that the other side has closed, and who dials hears nothing. What was
under way is kept, and arrives when the link is well again. The dialling itself is direct: where nobody listens, that is
heard at once, as ever. Clients dial brokers themselves, and are not touched.
"""

import contextlib
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from klamm.runtime.dialer import Dialer, Dialing
from klamm.runtime.loop import NEVER, READABLE, WRITABLE, Loop, monotonic_ms
from klamm.runtime.server import do_not_pace

Address: TypeAlias = tuple[str, int]

READ_BYTES = 256 << 10
HELD_BYTES = 4 << 20
"""So much may be on its way over a slow link; whoever sends more waits."""


class Link(NamedTuple):
    is_cut: bool = False
    delay_ms: float = 0.0
    """One way."""


GOOD = Link()


class LinkedDialer(Dialer):
    """Dials as ever, and hands out connections that lie behind a relay."""

    def __init__(self, loop: Loop, node: Dialing, links: Mapping[Address, Link]) -> None:
        super().__init__(loop, self)
        self._node = node
        self._links = dict(links)
        self._addresses: dict[int, Address] = {}
        """Of attempts under way."""
        self._swallowed: dict[int, Address] = {}
        """Attempts that nobody answers, because the link is cut."""
        self._relays: set[Relay] = set()
        self._alarm = loop.alarm(self._deliver)

    def set_links(self, links: Mapping[Address, Link]) -> None:
        """From now on; those that are not named are well."""
        self._links = dict(links)
        for relay in tuple(self._relays):
            relay.link = self._link(relay.address)
            relay.go_on()
        swallowed, self._swallowed = self._swallowed, {}
        for connection, address in swallowed.items():
            self.dial(connection, *address)
        self.note_due()

    def dial(self, connection: int, host: str, port: int) -> None:
        if self._link((host, port)).is_cut:
            self._swallowed[connection] = host, port
        else:
            self._addresses[connection] = host, port
            super().dial(connection, host, port)

    def call_off(self, connection: int) -> bool:
        self._addresses.pop(connection, None)
        return self._swallowed.pop(connection, None) is not None or super().call_off(connection)

    def close(self) -> None:
        super().close()
        self._swallowed.clear()
        for relay in tuple(self._relays):
            relay.close()
        self._loop.drop_alarm(self._alarm)

    # How an attempt ended. If the link was cut meanwhile, nobody hears of it yet.

    def dialed(self, connection: int, sock: socket.socket) -> None:
        address = self._addresses.pop(connection)
        if self._link(address).is_cut:
            sock.close()
            self._swallowed[connection] = address
            return
        near, inner = socket.socketpair()
        relay = Relay(self._loop, inner, sock, address, self._link(address), self._forget, self.note_due)
        self._relays.add(relay)
        relay.go_on()
        self._node.dialed(connection, NearEnd(near, address))

    def refused(self, connection: int, nobody_listens: bool) -> None:
        address = self._addresses.pop(connection)
        if self._link(address).is_cut:
            self._swallowed[connection] = address
        else:
            self._node.refused(connection, nobody_listens)

    # What is late.

    def note_due(self) -> None:
        self._alarm.at_ms = min((relay.due_ms() for relay in self._relays), default=NEVER)

    def _deliver(self) -> None:
        for relay in tuple(self._relays):
            relay.go_on()
        self.note_due()

    def _forget(self, relay: "Relay") -> None:
        self._relays.discard(relay)

    def _link(self, address: Address) -> Link:
        return self._links.get(address, GOOD)


class NearEnd(socket.socket):
    """The node's end. It says, as a connection does, who is at the other one."""

    def __init__(self, near: socket.socket, address: Address) -> None:
        super().__init__(fileno=near.detach())
        self.setblocking(False)
        self._address = address

    def getpeername(self) -> Address:
        return self._address


class Way:
    """One direction of a connection: what came and is not passed on yet, with the time it came."""

    __slots__ = ("has_ended", "held_bytes", "is_blocked", "queue", "source", "target")

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        self.queue: deque[tuple[float, memoryview]] = deque()
        self.held_bytes = 0
        self.is_blocked = False
        """Whether the target had no room."""
        self.has_ended = False


class Relay:
    """One connection: what the node says on its end is passed on to the other node, and back."""

    def __init__(
        self,
        loop: Loop,
        near: socket.socket,
        far: socket.socket,
        address: Address,
        link: Link,
        on_close: Callable[["Relay"], None],
        on_late: Callable[[], None],
    ) -> None:
        self.address, self.link = address, link
        self._loop = loop
        self._on_close, self._on_late = on_close, on_late
        near.setblocking(False)
        with contextlib.suppress(OSError):
            # As the server does with connections that it holds itself.
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            do_not_pace(far)
        self._ways = Way(near, far), Way(far, near)
        self._interest: dict[socket.socket, int] = {near: 0, far: 0}
        self._is_open = True

    def due_ms(self) -> float:
        """When the next of what is held has been held long enough."""
        if self.link.is_cut:
            return NEVER
        waiting = (way.queue[0][0] for way in self._ways if way.queue and not way.is_blocked)
        return min(waiting, default=NEVER) + self.link.delay_ms

    def go_on(self) -> None:
        """Pass on what is due, and listen for more, as far as the link allows."""
        if not self.link.is_cut:
            for way in self._ways:
                self._pass_on(way)
        if self._is_open:
            for sock in self._interest:
                self._set_interest(sock)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            for sock, interest in self._interest.items():
                if interest:
                    self._loop.forget(sock.fileno())
                sock.close()
            self._on_close(self)

    # Helpers.

    def _pass_on(self, way: Way) -> None:
        is_due_ms = monotonic_ms() - self.link.delay_ms
        while self._is_open and way.queue and not way.is_blocked and way.queue[0][0] <= is_due_ms:
            came_ms, piece = way.queue[0]
            try:
                sent = way.target.send(piece)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.close()
                return
            way.held_bytes -= sent
            if sent < len(piece):
                way.is_blocked = True
                way.queue[0] = came_ms, piece[sent:]
            else:
                way.queue.popleft()
        if way.has_ended and not way.queue:
            self.close()

    def _ready(self, sock: socket.socket, events: int) -> None:
        outward, inward = self._ways
        reads, writes = (outward, inward) if sock is outward.source else (inward, outward)
        if events & WRITABLE:
            writes.is_blocked = False
        if events & ~WRITABLE and self._interest[sock] & READABLE:
            self._read(reads)
        elif events & ~WRITABLE:
            # Broken, and nothing to be read: the next send would tell the same.
            self.close()
        self.go_on()
        if self._is_open and self.due_ms() < NEVER:
            self._on_late()

    def _read(self, way: Way) -> None:
        try:
            piece = way.source.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if piece:
            way.queue.append((monotonic_ms(), memoryview(piece)))
            way.held_bytes += len(piece)
        else:
            way.has_ended = True

    def _set_interest(self, sock: socket.socket) -> None:
        interest = 0
        for way in self._ways:
            if way.source is sock and not way.has_ended and way.held_bytes < HELD_BYTES:
                interest |= READABLE
            if way.target is sock and way.is_blocked:
                interest |= WRITABLE
        if self.link.is_cut:
            interest = 0
        known, self._interest[sock] = self._interest[sock], interest
        if interest == known:
            return
        # Who is not interested is not registered: else a connection that broke would be told of again and again.
        if not known:
            self._loop.watch(sock.fileno(), interest, lambda events: self._ready(sock, events), first=True)
        elif not interest:
            self._loop.forget(sock.fileno())
        else:
            self._loop.change(sock.fileno(), interest)
