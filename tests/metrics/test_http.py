"""HTTP as strangers speak it: too much, too slow, half, something else, and all at once."""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import repeat

import pytest

from klamm.facts import Fact
from klamm.runtime import http
from klamm.runtime.facts import PageFailed
from klamm.runtime.http import HttpServer, Page
from klamm.runtime.loop import Loop
from tests.harness.waiting import wait_until

PIECE = "x" * 50_000
GET = b"GET /short HTTP/1.1\r\nHost: here\r\n\r\n"


def broken() -> Iterator[str]:
    yield "half of it\n"
    raise RuntimeError("a mistake of ours")


def fails(error: Exception) -> Page:
    raise error


class Served:
    """Some pages on a loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.told: list[Fact] = []
        self.pieces_made = 0
        self.turn = 0
        self.made: list[tuple[int, object]] = []
        """The turn, and whose piece it was."""
        self.http = HttpServer(self.loop, self._page, self.told.append)
        self.port = self.http.listen("127.0.0.1", 0)
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()

    def _page(self, path: str, query: str) -> Page | None:
        pages = {
            "/short": lambda: Page(200, iter(("so ", "", "it is\n"))),
            "/broken": lambda: Page(200, broken()),
            "/endless": lambda: Page(200, self._counted()),
            "/by-turns": lambda: Page(200, self._noted(object())),
            "/unmade": lambda: fails(RuntimeError("a mistake of ours")),
            "/unreadable": lambda: fails(OSError("a mistake of ours")),
            "/unwritable": lambda: Page(200, iter(("a mistake of ours: \ud800",))),
            "/unheard-of": lambda: Page(299, iter(("a mistake of ours",))),
        }
        return pages[path]() if path in pages else None

    def _counted(self) -> Iterator[str]:
        for piece in repeat(PIECE):
            self.pieces_made += 1
            yield piece

    def _noted(self, whose: object) -> Iterator[str]:
        while True:
            self.made.append((self.turn, whose))
            yield "x"

    def count_turns(self) -> None:
        self.turn += 1
        self.loop.at_end_of_turn(self.count_turns)

    def ask(self, said: bytes) -> bytes:
        """Everything that is answered, until it ends."""
        with self.connection() as sock:
            sock.sendall(said)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    def connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), 20)

    def close(self) -> None:
        self.loop.call_soon(self.http.close)
        self.loop.stop()
        self._thread.join()
        self.loop.close()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


def test_a_page_is_sent_in_the_pieces_it_was_made_in(served: Served) -> None:
    head, _, body = served.ask(GET).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\nConnection: close" in head
    assert body == b"3\r\nso \r\n6\r\nit is\n\r\n0\r\n\r\n"


def test_an_old_client_gets_it_without_chunks(served: Served) -> None:
    head, _, body = served.ask(b"GET /short?x=1 HTTP/1.0\r\n\r\n").partition(b"\r\n\r\n")
    assert body == b"so it is\n" and b"chunked" not in head


def test_a_head_is_a_page_without_its_body(served: Served) -> None:
    answer = served.ask(b"HEAD /short HTTP/1.1\r\nHost: here\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"GET /nowhere HTTP/1.1\r\nHost: here\r\n\r\n", b"404"),
        (b"POST /short HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"GET /short HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /short HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /short HTTP/2.0\r\nHost: here\r\n\r\n", b"505"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
        (b"GET http://elsewhere/ HTTP/1.1\r\nHost: here\r\n\r\n", b"400"),
        (b"GET  /short HTTP/1.1\r\nHost: here\r\n\r\n", b"400"),
        (b"GET /sh\x00rt HTTP/1.1\r\nHost: here\r\n\r\n", b"400"),
        (b"GET /short HTTP/1.1\r\nHost: here\r\n folded\r\n\r\n", b"400"),
        (b"GET /short HTTP/1.1\r\nHost : here\r\n\r\n", b"400"),
        (b"GET /short HTTP/1.1\r\nHost: he\x01re\r\n\r\n", b"400"),
        (b"GET /short HTTP/1.1\nHost: here\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"400"),
        (b"\x00\x00\x00\x10\x00\x12\x00\x03", b"400"),
        (b"GET /" + b"a" * 9000, b"431"),
        (b"GET /short HTTP/1.1\r\n" + b"X: y\r\n" * 3000, b"431"),
        (b"G" * 100_000, b"431"),
    ],
)
def test_what_is_wrong_is_refused_by_name_and_the_connection_ends(served: Served, said: bytes, status: bytes) -> None:
    assert served.ask(said).startswith(b"HTTP/1.1 " + status)
    assert served.ask(GET).startswith(b"HTTP/1.1 200")


def test_a_request_may_come_letter_by_letter(served: Served) -> None:
    with served.connection() as sock:
        for letter in GET:
            sock.sendall(bytes((letter,)))
        assert sock.recv(15) == b"HTTP/1.1 200 OK"


def test_who_does_not_go_on_is_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEAD_MS", 100.0)
    with served.connection() as sock:
        sock.sendall(b"GET /short HTT")
        assert sock.recv(100) == b""


def test_who_does_not_read_costs_a_few_pieces_and_is_sent_away(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "PAGE_MS", 300.0)
    with served.connection() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(b"GET /endless HTTP/1.1\r\nHost: here\r\n\r\n")
        wait_until(lambda: served.pieces_made > 0, "the page is begun")
        assert served.ask(GET).startswith(b"HTTP/1.1 200"), "others are answered meanwhile"
        wait_until(lambda: not served.http._visitors, "it is sent away")
    assert served.pieces_made * len(PIECE) < 64 << 20


def test_a_page_that_breaks_off_does_not_look_whole_and_is_told_of(served: Served) -> None:
    answer = served.ask(b"GET /broken HTTP/1.1\r\nHost: here\r\n\r\n")
    assert answer.endswith(b"half of it\n\r\n"), "no last chunk"
    (fact,) = served.told
    assert isinstance(fact, PageFailed) and fact.path == "/broken" and "a mistake of ours" in str(fact)
    assert served.ask(GET).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/unmade", "/unreadable", "/unwritable", "/unheard-of"])
def test_a_page_that_cannot_be_made_is_told_of_and_stops_nobody(served: Served, path: str) -> None:
    answer = served.ask(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    assert not answer.endswith(b"0\r\n\r\n"), "no last chunk"
    (fact,) = served.told
    assert isinstance(fact, PageFailed) and fact.path == path and "Error" in fact.traceback
    assert served.ask(GET).startswith(b"HTTP/1.1 200")


def test_a_crowd_is_bounded_keeps_nobody_out_and_leaves_room_when_it_goes(served: Served) -> None:
    crowd = [served.connection() for _ in range(http.MOST_CONNECTIONS)]
    wait_until(lambda: len(served.http._visitors) == http.MOST_CONNECTIONS, "as many as may come are there")
    assert served.ask(GET).startswith(b"HTTP/1.1 200"), "one more is served"
    assert crowd[0].recv(1) == b"", "instead of the one that was silent longest"
    crowd[-1].sendall(GET)
    assert crowd[-1].recv(15) == b"HTTP/1.1 200 OK", "the others have their place"
    crowd += [served.connection() for _ in range(10)]
    assert served.ask(GET).startswith(b"HTTP/1.1 200")
    assert len(served.http._visitors) <= http.MOST_CONNECTIONS
    for sock in crowd:
        sock.close()
    wait_until(lambda: not served.http._visitors, "they are gone")
    assert served.ask(GET).startswith(b"HTTP/1.1 200")


def test_who_is_being_answered_loses_the_place_to_nobody(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(served.connection()) for _ in range(http.MOST_CONNECTIONS)]
        for sock in crowd:
            sock.sendall(b"GET /endless HTTP/1.1\r\nHost: here\r\n\r\n")
        for sock in crowd:
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        there = set(served.http._visitors)
        with served.connection() as late, contextlib.suppress(ConnectionError):
            late.sendall(GET)
            assert late.recv(1) == b""
        assert served.http._visitors == there and len(there) == http.MOST_CONNECTIONS


def test_a_turn_has_one_piece_however_many_wait_for_theirs(served: Served) -> None:
    served.loop.call_soon(served.count_turns)
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            sock = stack.enter_context(served.connection())
            sock.sendall(b"GET /by-turns HTTP/1.1\r\nHost: here\r\n\r\n")
        wait_until(lambda: len({whose for _, whose in list(served.made)}) == 8, "all eight have begun")
        begun = len(served.made)
        wait_until(lambda: len(served.made) >= begun + 80, "ten rounds are made")
        made = served.made[: begun + 80]
    turns = [turn for turn, _ in made]
    assert len(set(turns)) == len(turns)
    assert min(Counter(whose for _, whose in made[begun:]).values()) >= 5, "everybody has a share"


def test_who_leaves_in_the_middle_is_forgotten(served: Served) -> None:
    for said in (b"", b"GET", GET, b"GET /endless HTTP/1.1\r\nHost: here\r\n\r\n"):
        with served.connection() as sock:
            sock.sendall(said)
    wait_until(lambda: not served.http._visitors, "nobody is left")


def test_nothing_is_left_to_do_when_nobody_is_there(served: Served) -> None:
    """No alarm keeps an idle node awake."""
    assert served.ask(GET)
    deadline = time.monotonic() + 10
    while served.http._sweep.at_ms != float("inf"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
