"""An unkind network: a proxy that cuts connections at byte positions drawn from a seed.

Each connection gets two fuses, one per direction: so many bytes pass, then both sides are cut, in the middle of
whatever was on its way. A cut on the way in tears a request; a cut on the way out loses an answer to something the
broker has done. Answers are held for a moment, as on a real network, so that clients fill their pipeline.
"""

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from random import Random

HOLD_SECONDS = 0.01
CHUNK_BYTES = 16 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
PRODUCE = 0


class CuttingProxy:
    """Listens on `address` at once; passes connections to `target_port` from `connect_to` on."""

    def __init__(self, seed: int, mean_request_bytes: float = 120_000, mean_response_bytes: float = 4_000) -> None:
        self._random = Random(seed)
        self._mean_request_bytes = mean_request_bytes
        self._mean_response_bytes = mean_response_bytes
        self._target_port: int | None = None
        self._cutting = False
        self._closed = False
        self._lock = threading.Lock()
        self._links: list[_Link] = []
        self.cuts: list[Cut] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> "CuttingProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect_to(self, port: int) -> None:
        self._target_port = port

    def start_cutting(self) -> None:
        """From now on every new connection has fuses; those that exist are cut now."""
        with self._lock:
            self._cutting = True
            links = list(self._links)
        for link in links:
            link.cut()

    def heal(self) -> None:
        """No more cuts: from now on every byte arrives."""
        self._cutting = False

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._acceptor.join(5)
        with self._lock:
            links = list(self._links)
        for link in links:
            link.cut()
        for link in links:
            link.join()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                assert self._target_port is not None
                broker = socket.create_connection(("127.0.0.1", self._target_port), timeout=5)
                broker.settimeout(None)
            except (OSError, AssertionError):
                client.close()
                continue
            with self._lock:
                request_fuse = int(self._random.expovariate(1 / self._mean_request_bytes))
                response_fuse = int(self._random.expovariate(1 / self._mean_response_bytes))
                politely = self._random.random() < 0.5
                link = _Link(self, client, broker, request_fuse, response_fuse, politely)
                self._links = [other for other in self._links if other.is_open] + [link]
            link.start()

    def burnt(self, link: "_Link", way: str) -> bool:
        """A fuse is used up: is the connection to be cut? Notes what was under way if so."""
        if self._cutting:
            self.cuts.append(Cut(way, link.in_flight))
        return self._cutting


@dataclass
class Cut:
    """One cut: in which direction the bytes stopped, and how many Produce requests had no answer yet."""

    way: str
    in_flight: int


@dataclass
class _Frames:
    """Follows a stream of frames: how many began, and of those how many are Produce requests (on the way in)."""

    begun: int = 0
    produces: int = 0
    finished: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _left: int = 0

    def feed(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            if self._left == 0:
                taken = data[position : position + 6 - len(self._head)]
                self._head += taken
                position += len(taken)
                if len(self._head) == 6:
                    size, api_key = struct.unpack(">ih", self._head)
                    self.begun += 1
                    self.produces += api_key == PRODUCE
                    self._left = size - 2
                    self._head.clear()
            taken_bytes = min(self._left, len(data) - position)
            self._left -= taken_bytes
            position += taken_bytes
            if self._left == 0 and not self._head and self.finished < self.begun:
                self.finished += 1


class _Link:
    """One client connection and its twin to the broker, with a thread for each direction."""

    def __init__(
        self,
        proxy: CuttingProxy,
        client: socket.socket,
        broker: socket.socket,
        request_fuse: int,
        response_fuse: int,
        politely: bool,
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._politely = politely
        self._requests = _Frames()
        self._answers = _Frames()
        self.is_open = True
        self._threads = [
            threading.Thread(
                target=self._pump, args=(client, broker, request_fuse, self._requests, 0.0, "request"), daemon=True
            ),
            threading.Thread(
                target=self._pump,
                args=(broker, client, response_fuse, self._answers, HOLD_SECONDS, "answer"),
                daemon=True,
            ),
        ]

    @property
    def in_flight(self) -> int:
        """Requests the client has begun and not had answered; after the first few all of them are Produce."""
        outstanding = self._requests.begun - self._answers.finished
        return min(outstanding, self._requests.produces)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def cut(self) -> None:
        """Ends both sides: with a FIN, or with a reset that throws away what was still to be read."""
        self.is_open = False
        for end in (self._client, self._broker):
            with contextlib.suppress(OSError):
                if not self._politely:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                end.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(5)

    def _pump(
        self, source: socket.socket, sink: socket.socket, fuse: int, frames: _Frames, hold_seconds: float, way: str
    ) -> None:
        try:
            while data := source.recv(CHUNK_BYTES):
                if hold_seconds:
                    time.sleep(hold_seconds)
                if len(data) > fuse and self._proxy.burnt(self, way):
                    sink.sendall(data[:fuse])
                    break
                frames.feed(data)
                fuse = max(0, fuse - len(data))
                sink.sendall(data)
        except OSError:
            pass  # The other direction was cut, or one side left.
        finally:
            self.cut()
            with contextlib.suppress(OSError):
                source.close()
