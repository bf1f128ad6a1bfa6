"""Just enough HTTP to be looked at: GET and HEAD, one answer a connection, everything else refused and closed.

A page is an iterator of pieces. One piece is made in one turn of the loop, however many wait for theirs, and the next
of a page only when the last has left: long pages and crowds never hold the node up, and a slow reader holds up nobody
but itself. Of a page that is shared (`shared_pages.py`), what was made for one is sent to all who wait for it. What a
stranger may cost is bounded: so many connections, so many bytes of a request, so much time for each part. Who comes
when all places are taken gets that of the one who has been heard longest and has not asked yet.

Left out: bodies of requests, connections that stay open, compression, ranges. A scrape needs none of them.
"""

import contextlib
import socket
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from klamm.facts import Tell
from klamm.runtime.facts import PageFailed
from klamm.runtime.http_head import BadHead, Head, read_head
from klamm.runtime.loop import NEVER, READABLE, WRITABLE, Loop, monotonic_ms
from klamm.runtime.shared_pages import Reader

MOST_CONNECTIONS = 32
HEAD_MS = 5_000.0
"""So long may a request take to arrive."""

PAGE_MS = 30_000.0
"""So long may an answer take to be made and read."""

LINGER_MS = 1_000.0
"""So long the other side may take to hear the end. Closed at once on what it still sends, it would lose our answer."""

SWEEP_MS = 250.0
READ_BYTES = 4096
BACKLOG = 32

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
PLAIN = "text/plain; charset=utf-8"


class Page(NamedTuple):
    status: int
    pieces: Iterator[str] | Reader
    content_type: str = PLAIN
    retry_after_seconds: int | None = None
    """With 503: when it is worth asking again."""


Answer: TypeAlias = Callable[[str, str], Page | None]
"""The page of a path and a query; None where there is none."""


class Stage(Enum):
    HEARING = "hearing"
    ANSWERING = "answering"
    LINGERING = "lingering"


class Visitor:
    """One connection, its request as far as it came, and what of the answer is still to be sent."""

    __slots__ = ("deadline_ms", "heard", "is_chunked", "left", "path", "pieces", "socket", "stage")

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.stage = Stage.HEARING
        self.deadline_ms = monotonic_ms() + HEAD_MS
        self.heard = b""
        self.path = ""
        self.left: memoryview = memoryview(b"")
        self.pieces: Iterator[str] | Reader | None = None
        self.is_chunked = False


class HttpServer:
    def __init__(self, loop: Loop, answer: Answer, tell: Tell) -> None:
        self._loop = loop
        self._answer = answer
        self._tell = tell
        self._listening: socket.socket | None = None
        self._visitors: set[Visitor] = set()
        self._to_make: dict[Visitor, None] = {}
        """Who waits for a piece to be made, in order. While there is somebody, `_make_one` is due at the turn's end."""
        self._sweep = loop.alarm(self._send_away_late_ones)

    def listen(self, host: str, port: int) -> int:
        """Take this address and answer there; the port that was really taken. OSError if it cannot be had."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind((host, port))
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
        self._listening = sock
        self._loop.watch(sock.fileno(), READABLE, self._knocked)
        return int(sock.getsockname()[1])

    def close(self) -> None:
        self._loop.drop_alarm(self._sweep)
        for visitor in list(self._visitors):
            self._close(visitor)
        if self._listening is not None:
            self._loop.forget(self._listening.fileno())
            self._listening.close()

    # Coming.

    def _knocked(self, events: int) -> None:
        assert self._listening is not None
        try:
            sock, _ = self._listening.accept()
        except BlockingIOError:
            return
        except OSError:
            # There are no descriptors left, most likely.
            self._rest()
            return
        sock.setblocking(False)
        if len(self._visitors) >= MOST_CONNECTIONS and not self._made_room():
            sock.close()
            return
        visitor = Visitor(sock)
        self._visitors.add(visitor)
        self._loop.watch(sock.fileno(), READABLE, lambda events: self._ready(visitor, events))
        if self._sweep.at_ms == NEVER:
            self._sweep.at_ms = monotonic_ms() + SWEEP_MS

    def _made_room(self) -> bool:
        """Some silent connections must not keep everybody else from asking whether this node is well."""
        hearing = [each for each in self._visitors if each.stage is Stage.HEARING]
        if hearing:
            self._close(min(hearing, key=lambda each: each.deadline_ms))
        return bool(hearing)

    def _rest(self) -> None:
        """Not to be told again and again of somebody whom we cannot let in."""
        assert self._listening is not None
        self._loop.change(self._listening.fileno(), 0)
        self._sweep.at_ms = monotonic_ms() + SWEEP_MS

    def _ready(self, visitor: Visitor, events: int) -> None:
        if visitor.stage is not Stage.ANSWERING:
            self._attempt(self._hear, visitor)
        elif visitor.left:
            self._attempt(self._send, visitor)
        else:
            self._let_queue(visitor)

    def _attempt(self, act: Callable[[Visitor], None], visitor: Visitor) -> None:
        try:
            act(visitor)
        except BlockingIOError:
            return
        except OSError:
            self._close(visitor)
        except Exception:
            # Half a page must not look like a whole one, and a page is no reason to stop a broker.
            from traceback import format_exc

            self._tell(PageFailed(visitor.path, format_exc()))
            self._close(visitor)

    # Hearing.

    def _hear(self, visitor: Visitor) -> None:
        arrived = visitor.socket.recv(READ_BYTES)
        if not arrived:
            self._close(visitor)
        elif visitor.stage is Stage.HEARING:
            visitor.heard += arrived
            try:
                head = read_head(visitor.heard)
            except BadHead as problem:
                self._begin(visitor, Page(problem.status, iter((f"{problem}\n",))), is_old=True)
                return
            if head is not None:
                self._answer_to(visitor, head)

    def _answer_to(self, visitor: Visitor, head: Head) -> None:
        visitor.path = head.path
        if head.method not in ("GET", "HEAD"):
            self._begin(visitor, Page(405, iter(("only GET and HEAD are answered here\n",))), is_old=head.is_old)
            return
        with _ours():
            page = self._answer(head.path, head.query) or Page(404, iter(("there is no such page\n",)))
        if head.method == "HEAD":
            page = page._replace(pieces=iter(()))
        self._begin(visitor, page, is_old=head.is_old, has_body=head.method == "GET")

    # Answering.

    def _begin(self, visitor: Visitor, page: Page, *, is_old: bool, has_body: bool = True) -> None:
        """An old client does not know of chunks: for it the page ends with the connection."""
        lines = [f"HTTP/1.1 {page.status} {REASONS[page.status]}", f"Content-Type: {page.content_type}"]
        lines += ["Connection: close", "Cache-Control: no-store"]
        if page.status == 405:
            lines.append("Allow: GET, HEAD")
        if page.retry_after_seconds is not None:
            lines.append(f"Retry-After: {page.retry_after_seconds}")
        if not is_old:
            lines.append("Transfer-Encoding: chunked")
        visitor.is_chunked = has_body and not is_old
        visitor.left = memoryview(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        visitor.pieces = page.pieces
        visitor.stage = Stage.ANSWERING
        visitor.deadline_ms = monotonic_ms() + PAGE_MS
        self._loop.change(visitor.socket.fileno(), WRITABLE)

    def _let_queue(self, visitor: Visitor) -> None:
        if _has_more(visitor):
            self._attempt(self._make_and_send, visitor)
            return
        if not self._to_make:
            self._loop.at_end_of_turn(self._make_one)
        self._to_make[visitor] = None

    def _make_one(self) -> None:
        """For whoever has waited longest and is still there."""
        while self._to_make:
            visitor = next(iter(self._to_make))
            del self._to_make[visitor]
            if visitor in self._visitors:
                self._attempt(self._make_and_send, visitor)
                break
        # Others may have waited for the same piece.
        for visitor in [each for each in self._to_make if _has_more(each)]:
            del self._to_make[visitor]
            self._attempt(self._make_and_send, visitor)
        if self._to_make:
            self._loop.at_end_of_turn(self._make_one)

    def _make_and_send(self, visitor: Visitor) -> None:
        assert visitor.pieces is not None and not visitor.left
        with _ours():
            made = next(visitor.pieces, None)
        piece = made.encode() if isinstance(made, str) else made or b""
        if made is None:
            visitor.pieces = None
        if visitor.is_chunked and (piece or made is None):
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        visitor.left = memoryview(piece)
        self._send(visitor)

    def _send(self, visitor: Visitor) -> None:
        if visitor.left:
            visitor.left = visitor.left[visitor.socket.send(visitor.left) :]
        if not visitor.left and visitor.pieces is None:
            visitor.stage = Stage.LINGERING
            visitor.deadline_ms = monotonic_ms() + LINGER_MS
            visitor.socket.shutdown(socket.SHUT_WR)
            self._loop.change(visitor.socket.fileno(), READABLE)

    # Going.

    def _close(self, visitor: Visitor) -> None:
        if visitor in self._visitors:
            self._visitors.discard(visitor)
            visitor.pieces = None
            visitor.left = memoryview(b"")
            visitor.stage = Stage.LINGERING
            self._loop.forget(visitor.socket.fileno())
            with contextlib.suppress(OSError):
                visitor.socket.close()

    def _send_away_late_ones(self) -> None:
        now_ms = monotonic_ms()
        for visitor in [each for each in self._visitors if each.deadline_ms <= now_ms]:
            self._close(visitor)
        if self._listening is not None:
            self._loop.change(self._listening.fileno(), READABLE)
        self._sweep.at_ms = now_ms + SWEEP_MS if self._visitors else NEVER


def _has_more(visitor: Visitor) -> bool:
    """Without anything that has to be made."""
    return isinstance(visitor.pieces, Reader) and visitor.pieces.has_more


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    """Around the making of a page: what its files do must not be taken for something that the visitor's socket did."""
    try:
        yield
    except OSError as error:
        raise RuntimeError("a page could not be made") from error
