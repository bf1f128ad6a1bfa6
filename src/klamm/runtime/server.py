"""Connections: taken or dialled, read in turn, paused, and closed.

All connections read into one buffer, because a step never keeps what it was shown. What all their unfinished frames
hold together has a bound (`room.py`).
"""

import contextlib
import errno
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from klamm.codec.primitives import Malformed
from klamm.facts import Tell
from klamm.log.files import DiskFailed
from klamm.runtime.connection import Connection
from klamm.runtime.facts import AcceptFailed, ConnectionRefused, ReplyLost, StrangeBytes
from klamm.runtime.files import RealRegion
from klamm.runtime.inbox import Inbox
from klamm.runtime.loop import BROKEN, HUNG_UP, NEVER, READABLE, WRITABLE, Loop, monotonic_ms
from klamm.runtime.room import SILENT_MS, SMALL_READ, Room

TURN_BYTES = 1 << 20
"""The most that one connection may say in one turn."""

SWEEP_MS = 5_000.0
ACCEPTED_AT_ONCE = 64
BACKLOG = 512
OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def do_not_pace(sock: socket.socket) -> None:
    """For a connection within this machine. The system's default may be BBR, which paces what it sends by a timer;
    where there is no network to be gentle with, that doubles the processor time of every byte. Reno is in every kernel.
    """
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")


class Listener(Protocol):
    """Who hears what happens on the sockets."""

    def opened(self, connection: int, peer: str) -> None: ...

    def received(self, connection: int, frames: Sequence[memoryview]) -> int:
        """Take frames; how many of the last ones were left, to be offered again after `resume`."""
        ...

    def drained(self, connection: int) -> None: ...
    def closed(self, connection: int) -> None: ...


@dataclass(slots=True)
class Limits:
    max_frame_bytes: int = 100 << 20
    max_connections: int = 1 << 31
    max_connections_per_ip: int = 1 << 31
    max_idle_ms: float = 600_000.0
    connections_of: Mapping[str, int] = field(default_factory=dict)
    """How many connections of these addresses are held, in the place of `max_connections_per_ip`."""
    unfinished_bytes: int = 64 << 20


class Server:
    def __init__(self, loop: Loop, listener: Listener, limits: Limits, tell: Tell) -> None:
        self._loop = loop
        self._listener = listener
        self._limits = limits
        self._tell = tell
        self._sockets: list[socket.socket] = []
        self._takes_connections = False
        self._connections: dict[int, Connection] = {}
        self._per_ip: dict[str, int] = {}
        self._next_id = 0
        self._buffer = memoryview(bytearray(TURN_BYTES))
        self._room = Room[Connection](limits.unfinished_bytes, self._set_interest)
        self._look_at_room = loop.alarm(self._make_room)
        self._sweep = loop.alarm(self._sweep_idle)
        self._sweep.at_ms = monotonic_ms() + SWEEP_MS
        self._accept_again = loop.alarm(self._watch_listeners)

    def limit(self, limits: Limits) -> None:
        """From now on, for connections to come. The room for unfinished frames stays what it was."""
        self._limits = limits

    def bind(self, host: str, port: int) -> int:
        """Take this address, without answering on it yet; the port that was really taken."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        try:
            sock.bind((host, port))
        except OSError:
            sock.close()
            raise
        self._sockets.append(sock)
        return int(sock.getsockname()[1])

    def take_connections(self) -> None:
        self._takes_connections = True
        for sock in self._sockets:
            sock.listen(BACKLOG)
            self._loop.watch(sock.fileno(), READABLE, self._on_knock(sock))

    def close(self) -> None:
        """Stop listening and close every connection, without a word to the node."""
        self._loop.drop_alarm(self._sweep)
        self._loop.drop_alarm(self._look_at_room)
        self._loop.drop_alarm(self._accept_again)
        for sock in self._sockets:
            if self._takes_connections:
                self._loop.forget(sock.fileno())
            sock.close()
        for connection in self._connections.values():
            self._loop.forget(connection.socket.fileno())
            connection.outbox.clear()
            connection.socket.close()
        self._connections.clear()

    @property
    def accepted_count(self) -> int:
        """How many connections others have opened, that are there."""
        return sum(self._per_ip.values())

    @property
    def accepted_total(self) -> int:
        return self._next_id

    @property
    def unfinished_bytes(self) -> int:
        return self._room.used_bytes

    @property
    def waiting_for_room(self) -> int:
        return self._room.starved_count

    @property
    def dialed_count(self) -> int:
        return len(self._connections) - self.accepted_count

    # What the node wants.

    def send(self, identity: int, pieces: Sequence[object]) -> None:
        connection = self._connections.get(identity)
        if connection is None or connection.closing:
            return
        outbox = connection.outbox
        if not outbox and len(pieces) == 1 and not isinstance(pieces[0], RealRegion):
            pieces = self._sent_at_once(connection, pieces[0])  # type: ignore[arg-type]
            if not pieces:
                return
            outbox.add(pieces)
            self._set_interest(connection)
            return
        was_empty = not outbox
        outbox.add(pieces)
        if was_empty:
            self._send_on(connection)

    def pause(self, identity: int) -> None:
        connection = self._connections.get(identity)
        if connection is not None:
            connection.paused = True
            self._set_interest(connection)
            if not connection.outbox:
                self._loop.call_soon(lambda: self._listener.drained(identity))

    def resume(self, identity: int) -> None:
        connection = self._connections.get(identity)
        if connection is not None and connection.paused:
            self._loop.call_soon(lambda: self._offer_again(identity))

    def close_after_sending(self, identity: int) -> None:
        connection = self._connections.get(identity)
        if connection is not None:
            connection.closing = True
            if connection.outbox:
                self._set_interest(connection)
            else:
                self._close(connection)

    # Bytes in.

    def _read(self, connection: Connection, events: int) -> None:
        if not connection.interest & READABLE:
            # What was readable when we looked may be none of our interest by now; but a broken or abandoned connection
            # tells so whatever our interest is.
            if events & BROKEN:
                self._close(connection)
            return
        most_bytes = SMALL_READ if self._room.is_short_for(connection) else TURN_BYTES
        try:
            count = connection.socket.recv_into(self._buffer, most_bytes)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self._close(connection)
            return
        connection.active_ms = monotonic_ms()
        self._deliver(connection, lambda inbox: inbox.frames(self._buffer[:count]))

    def _offer_again(self, identity: int) -> None:
        """What was not taken is offered again, before anything else is read."""
        connection = self._connections.get(identity)
        if connection is not None and not connection.closing:
            connection.paused = False
            if connection.inbox.untaken:
                self._deliver(connection, Inbox.frames_again)
            self._set_interest(connection)

    def _deliver(self, connection: Connection, frames_of: Callable[[Inbox], list[memoryview]]) -> None:
        inbox = connection.inbox
        try:
            frames = frames_of(inbox)
            if frames:
                left = self._listener.received(connection.id, frames)
                if left:
                    inbox.put_back(frames[len(frames) - left :])
                elif inbox.unfinished:
                    inbox.check()
        except Malformed as error:
            self._tell(StrangeBytes(connection.peer, str(error)))
            self.close_after_sending(connection.id)
        if not connection.is_open:
            return
        if inbox.size != connection.counted_bytes:
            now_ms = monotonic_ms()
            self._room.note(connection, len(inbox.unfinished), inbox.size, now_ms)
            self._watch_room(now_ms)
        if inbox.untaken and not connection.paused:
            self._set_interest(connection)
            self._loop.call_soon(partial(self._offer_again, connection.id))

    def _watch_room(self, now_ms: float) -> None:
        if not self._room.is_contested:
            self._look_at_room.at_ms = NEVER
        elif self._look_at_room.at_ms == NEVER:
            self._look_at_room.at_ms = now_ms + SILENT_MS

    def _make_room(self) -> None:
        now_ms = monotonic_ms()
        self._look_at_room.at_ms = NEVER
        for connection in self._room.look(now_ms):
            if not self._room.is_contested:
                break
            self._tell(StrangeBytes(connection.peer, "a large request that does not go on while others wait for room"))
            self._close(connection)
        self._watch_room(now_ms)

    # Bytes out.

    def _sent_at_once(self, connection: Connection, piece: bytes) -> list[memoryview]:
        """Send a reply, as most are: one piece to a socket with room. What is left of it."""
        try:
            sent = connection.socket.send(piece)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return []
        return [memoryview(piece)[sent:]] if sent < len(piece) else []

    def _send_on(self, connection: Connection) -> None:
        outbox = connection.outbox
        try:
            outbox.send(connection.socket)
        except OSError:
            self._close(connection)
            return
        except DiskFailed as error:
            # A reply that cannot be completed cannot be taken back either: part of it may have left.
            self._tell(ReplyLost(connection.peer, str(error)))
            self._close(connection)
            return
        if not outbox and connection.closing:
            self._close(connection)
            return
        self._set_interest(connection)
        if not outbox and connection.paused:
            self._listener.drained(connection.id)

    def _set_interest(self, connection: Connection) -> None:
        is_starved = self._room.is_starved(connection)
        reading = connection.may_be_read and not is_starved
        interest = (READABLE if reading else 0) | (WRITABLE if connection.outbox else 0)
        if is_starved:
            # Whoever gives up while it waits for room makes room.
            interest |= HUNG_UP
        if interest != connection.interest and connection.is_open:
            connection.interest = interest
            self._loop.change(connection.socket.fileno(), interest)

    # Beginnings and endings.

    def _on_knock(self, sock: socket.socket) -> Callable[[int], None]:
        return lambda events: self._accept(sock)

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in OUT_OF_RESOURCES:
                    self._rest_from_accepting(error)
                return
            self._welcome(accepted, address[0], address[1])

    def _welcome(self, sock: socket.socket, ip: str, port: int) -> None:
        sock.setblocking(False)
        if not self._may_connect(ip):
            self._tell(ConnectionRefused(ip, len(self._connections)))
            sock.close()
            return
        self._per_ip[ip] = self._per_ip.get(ip, 0) + 1
        self._next_id += 1
        self.adopt(self._next_id, sock, ip, port)

    def adopt(self, identity: int, sock: socket.socket, ip: str, port: int) -> None:
        """A socket that is connected, by whomever, is ours from now on."""
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if ip.startswith("127.") or ip == sock.getsockname()[0]:
                do_not_pace(sock)
        connection = Connection(identity, sock, ip, port, self._limits.max_frame_bytes)
        self._connections[connection.id] = connection
        # What other nodes say comes before what clients say: also that one is gone, which clients will ask about.
        self._loop.watch(sock.fileno(), READABLE, self._on_ready(connection), first=identity < 0)
        self._listener.opened(connection.id, connection.peer)

    def _may_connect(self, ip: str) -> bool:
        limits = self._limits
        of_this_ip = limits.connections_of.get(ip, limits.max_connections_per_ip)
        return len(self._connections) < limits.max_connections and self._per_ip.get(ip, 0) < of_this_ip

    def _on_ready(self, connection: Connection) -> Callable[[int], None]:
        def on_ready(events: int) -> None:
            if events & WRITABLE:
                self._send_on(connection)
            if events & ~WRITABLE and connection.is_open:
                self._read(connection, events)

        return on_ready

    def _close(self, connection: Connection) -> None:
        if not connection.is_open:
            return
        connection.is_open = False
        self._loop.forget(connection.socket.fileno())
        connection.socket.close()
        connection.outbox.clear()
        del self._connections[connection.id]
        if connection.id > 0:
            self._per_ip[connection.ip] -= 1
            if not self._per_ip[connection.ip]:
                del self._per_ip[connection.ip]
        connection.inbox.unfinished = bytearray()
        connection.inbox.untaken = bytearray()
        now_ms = monotonic_ms()
        self._room.forget(connection, now_ms)
        self._watch_room(now_ms)
        self._listener.closed(connection.id)

    def _sweep_idle(self) -> None:
        now_ms = monotonic_ms()
        self._sweep.at_ms = now_ms + SWEEP_MS
        too_old = now_ms - self._limits.max_idle_ms
        for connection in [each for each in self._connections.values() if each.active_ms < too_old]:
            self._close(connection)

    def _rest_from_accepting(self, error: OSError) -> None:
        """Out of descriptors: stop listening for a moment, or the loop would spin on connections it cannot take."""
        self._tell(AcceptFailed(error.strerror or str(error)))
        for sock in self._sockets:
            self._loop.change(sock.fileno(), 0)
        self._accept_again.at_ms = monotonic_ms() + 500.0

    def _watch_listeners(self) -> None:
        self._accept_again.at_ms = NEVER
        for sock in self._sockets:
            self._loop.change(sock.fileno(), READABLE)
