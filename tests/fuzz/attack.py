"""Several connections that send mutated frames as quickly as they are taken, and know what became of each.

A lane sends a handful of frames at once, and behind them a question that is always answered. When that answer comes,
all of the handful were handled. When the broker closes instead, it was because of the frame after the last one that was
answered; the rest goes out again on a new connection. When neither comes soon, a frame has made the broker wait, as a
fetch may; the lane hangs up. So a frame counts once it was really handled, and for each closed connection we know whose
fault it was.
"""

import selectors
import socket
import struct
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from klamm.wire.messages.api_versions import ApiVersionsRequest
from tests.fuzz.mutations import Mutated, Mutations
from tests.hostile.raw import body_of

HANDFUL = 8
QUIET_SECONDS = 0.5
BUSY_SECONDS = 20.0
LAST = 0x7EA5
"""The correlation id of the question behind the frames; theirs count from 0."""

LAST_QUESTION = body_of(ApiVersionsRequest(), 0, LAST)
LAST_FRAME = struct.pack(">i", len(LAST_QUESTION)) + LAST_QUESTION
LEAST_BYTES = 8
"""Below this a frame has no correlation id to tell it by."""

REMEMBERED_CULPRITS = 2_000


@dataclass(slots=True)
class Counts:
    handled: int = 0
    answered: int = 0
    closed: int = 0
    waited: int = 0
    answer_bytes: int = 0


@dataclass(slots=True, eq=False)
class Lane:
    socket: socket.socket
    frames: list[Mutated] = field(default_factory=list)
    answered: int = 0
    unsent: bytes = b""
    received: bytearray = field(default_factory=bytearray)
    deadline: float = 0.0


class Attack:
    def __init__(self, port: int, mutations: Mutations, lanes: int) -> None:
        self._address = ("127.0.0.1", port)
        self._mutations = mutations
        self._selector = selectors.DefaultSelector()
        self._again: deque[Mutated] = deque()
        self._lanes: set[Lane] = set()
        self._heard = time.monotonic()
        self.counts = Counts()
        self.culprits: OrderedDict[int, Mutated] = OrderedDict()
        """By the port of the connection that the broker closed: the frame it was closed for."""
        for _ in range(lanes):
            self._open()

    def turn(self) -> None:
        """Go on with every lane that can; returns soon."""
        for key, _ in self._selector.select(0.05):
            lane: Lane = key.data
            try:
                if lane.unsent:
                    self._send(lane)
                self._receive(lane)
            except BlockingIOError:
                continue
            except OSError:
                self._closed(lane)
        now = time.monotonic()
        # While nobody hears anything, the broker is busy, and whose fault that is we want to know.
        busy = now - self._heard > QUIET_SECONDS / 2 and now - self._heard < BUSY_SECONDS
        for lane in [lane for lane in self._lanes if lane.deadline < now and not busy]:
            self.counts.waited += 1
            self._done(lane, len(lane.frames))
            self._hang_up(lane)
            self._open()

    def suspects(self) -> list[Mutated]:
        """The frames that are on their way, and those that connections were closed for lately."""
        in_flight = [frame for lane in self._lanes for frame in lane.frames]
        return in_flight + list(self.culprits.values())[-2 * len(self._lanes) :]

    def close(self) -> None:
        for lane in tuple(self._lanes):
            self._hang_up(lane)
        self._selector.close()

    # One lane.

    def _open(self) -> None:
        sock = socket.create_connection(self._address, timeout=10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        lane = Lane(sock)
        self._lanes.add(lane)
        self._selector.register(sock, selectors.EVENT_READ, lane)
        self._begin(lane)

    def _begin(self, lane: Lane) -> None:
        """The next handful. A frame whose size lies is the last, and there is no question behind it."""
        lane.frames, lane.answered = [], 0
        parts = []
        lies = False
        while len(lane.frames) < HANDFUL and not lies:
            frame = self._again.popleft() if self._again else self._mutations.next()
            lies = frame.size is not None or len(frame.body) < LEAST_BYTES
            body = frame.body
            if len(body) >= LEAST_BYTES:
                body = body[:4] + struct.pack(">i", len(lane.frames)) + body[8:]
            parts.append(struct.pack(">i", len(body) if frame.size is None else frame.size) + body)
            lane.frames.append(frame)
        if not lies:
            parts.append(LAST_FRAME)
        lane.unsent = b"".join(parts)
        lane.deadline = time.monotonic() + QUIET_SECONDS
        try:
            self._send(lane)
            if lies:
                lane.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            self._selector.modify(lane.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, lane)
        except OSError:
            self._closed(lane)

    def _send(self, lane: Lane) -> None:
        while lane.unsent:
            lane.unsent = lane.unsent[lane.socket.send(lane.unsent) :]
        self._selector.modify(lane.socket, selectors.EVENT_READ, lane)

    def _receive(self, lane: Lane) -> None:
        got = lane.socket.recv(1 << 18)
        self._heard = time.monotonic()
        if not got:
            self._closed(lane)
            return
        self.counts.answer_bytes += len(got)
        buffer = lane.received
        buffer += got
        position = 0
        while len(buffer) - position >= 8:
            size, correlation_id = struct.unpack_from(">ii", buffer, position)
            if len(buffer) - position < 4 + size:
                break
            position += 4 + size
            if correlation_id == LAST:
                del buffer[:position]
                self._done(lane, len(lane.frames))
                self._begin(lane)
                return
            self.counts.answered += 1
            lane.answered = correlation_id + 1
        del buffer[:position]

    def _closed(self, lane: Lane) -> None:
        """By the broker, because of the first frame that has no answer. (Or of a later one, if those between ask for
        none; then it is sent again and closes again.)"""
        culprit = min(lane.answered, len(lane.frames) - 1)
        self.counts.closed += 1
        self.culprits[_port(lane.socket)] = lane.frames[culprit]
        while len(self.culprits) > REMEMBERED_CULPRITS:
            self.culprits.popitem(last=False)
        self._again.extend(lane.frames[culprit + 1 :])
        self._done(lane, culprit + 1)
        self._hang_up(lane)
        self._open()

    def _done(self, lane: Lane, count: int) -> None:
        self.counts.handled += count

    def _hang_up(self, lane: Lane) -> None:
        self._lanes.discard(lane)
        self._selector.unregister(lane.socket)
        lane.socket.close()


def _port(sock: socket.socket) -> int:
    try:
        port: int = sock.getsockname()[1]
    except OSError:
        return 0
    return port
