"""A large page is made once for all who ask at the same time, and nobody gets a part of it for the whole. Work is
counted, not timed."""

import socket
import threading
from collections.abc import Iterator

import pytest

from klamm.facts import Fact
from klamm.runtime.facts import PageFailed
from klamm.runtime.http import HttpServer, Page
from klamm.runtime.loop import Loop, monotonic_ms
from klamm.runtime.shared_pages import CHEAP_PIECES, MOST_BYTES_AT_ONCE, MOST_PAGES, SHARED_MS, Reader, RecentPages
from tests.harness.waiting import wait_until

PIECES, CROWD = 400, 30
PIECE = "x" * 16_000 + "\n"


class Pages:
    """What is made is counted."""

    def __init__(self, pieces: int = PIECES) -> None:
        self.pieces = pieces
        self.begun = self.made = 0
        self.recent = RecentPages()

    def make(self) -> Iterator[str]:
        self.begun += 1
        for _ in range(self.pieces):
            self.made += 1
            yield PIECE

    def reader(self, now_ms: float = 0.0, query: str = "") -> Reader:
        found = self.recent.reader(query, self.make, now_ms)
        assert found is not None
        return found


def test_who_reads_along_costs_nothing_and_gets_the_same() -> None:
    pages = Pages()
    first = pages.reader()
    half = b"".join(next(first) for _ in range(PIECES // 2))
    second = pages.reader()
    assert b"".join(second) == half + b"".join(first) == (PIECE * PIECES).encode()
    assert (pages.begun, pages.made) == (1, PIECES)


def test_one_turn_makes_one_piece_and_gives_no_more_than_some_of_what_is_there() -> None:
    pages = Pages()
    first = pages.reader()
    for count in range(1, PIECES + 1):
        next(first)
        assert pages.made == count
    late = pages.reader()
    assert all(len(each) <= MOST_BYTES_AT_ONCE + len(PIECE) for each in late)


def test_a_large_page_is_given_to_others_for_a_second_and_not_longer() -> None:
    pages = Pages()
    list(pages.reader(0.0))
    list(pages.reader(SHARED_MS - 1))
    assert pages.begun == 1
    list(pages.reader(SHARED_MS + 1))
    assert pages.begun == 2


def test_a_small_page_says_how_things_are_now() -> None:
    pages = Pages(CHEAP_PIECES)
    for count in range(1, 5):
        list(pages.reader())
        assert pages.begun == count


def test_another_query_is_another_page() -> None:
    pages = Pages()
    one, other = pages.reader(query="name[]=a"), pages.reader(query="name[]=b")
    next(one), next(other)
    assert pages.begun == 2


def test_pages_that_are_read_are_few_and_let_go_when_they_are_not() -> None:
    pages = Pages()
    held = [pages.reader(number * 2 * SHARED_MS) for number in range(MOST_PAGES)]
    later = 100 * SHARED_MS
    assert pages.recent.reader("", pages.make, later) is None
    held.pop()
    assert pages.recent.reader("", pages.make, later) is not None
    pages.recent.forget_before(later)
    assert pages.recent.is_empty


def test_a_page_that_breaks_off_looks_whole_to_nobody_and_is_not_given_to_others() -> None:
    recent, begun = RecentPages(), 0

    def broken() -> Iterator[str]:
        nonlocal begun
        begun += 1
        yield PIECE
        raise RuntimeError("a mistake of ours")

    one, other = recent.reader("", broken, 0.0), recent.reader("", broken, 0.0)
    assert one is not None and other is not None
    for reader in (one, other):
        assert next(reader)
    for reader in (one, other, one):
        with pytest.raises(RuntimeError):
            next(reader)
    assert recent.reader("", broken, 0.0) is not None and begun == 1
    assert next(recent.reader("", broken, 0.0) or one) and begun == 2


class Served:
    def __init__(self) -> None:
        self.pages, self.told = Pages(), list[Fact]()
        self.loop = Loop()
        self.http = HttpServer(self.loop, self._page, self.told.append)
        self.port = self.http.listen("127.0.0.1", 0)
        self._thread = threading.Thread(target=self.loop.run)
        self._thread.start()

    def _page(self, path: str, query: str) -> Page:
        reader = self.pages.recent.reader(query, self.pages.make, monotonic_ms())
        return Page(200, reader) if reader else Page(503, iter(("busy\n",)), retry_after_seconds=2)

    def asking(self, query: str = "") -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.port), 20)
        sock.sendall(f"GET /?{query} HTTP/1.0\r\n\r\n".encode())
        return sock

    def close(self) -> None:
        def end() -> None:
            self.http.close()
            self.loop.stop()

        self.loop.call_soon(end)
        self._thread.join(10)


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


def read(sock: socket.socket) -> bytes:
    with sock:
        return b"".join(iter(lambda: sock.recv(1 << 20), b""))


def test_a_crowd_is_served_from_one_page(served: Served) -> None:
    """Thirty-two at once got none in five seconds: each had its own made, all of them in turn."""
    crowd = [served.asking() for _ in range(CROWD)]
    wait_until(lambda: len(served.http._visitors) == CROWD, "all are there")
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda sock=sock: answers.append(read(sock))) for sock in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {answer.partition(b"\r\n\r\n")[2] for answer in answers} == {(PIECE * PIECES).encode()}
    assert len(answers) == CROWD
    assert served.pages.begun <= 3, "one, and one more for each second that it takes"
    assert not [fact for fact in served.told if isinstance(fact, PageFailed)]


def test_whoever_is_one_too_many_is_told_when_to_come_back(served: Served) -> None:
    readers = [served.asking(f"q={number}") for number in range(MOST_PAGES)]
    wait_until(lambda: served.pages.begun == MOST_PAGES, "all of them have begun")
    answer = read(served.asking("one=more"))
    assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 2\r\n" in answer
    for sock in readers:
        sock.close()
    wait_until(lambda: read(served.asking("one=more")).startswith(b"HTTP/1.1 200 "), "their places are free")
