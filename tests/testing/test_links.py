"""Links between nodes, by real sockets: what is cut is silent, what is slow is late, and nothing is lost or doubled."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from klamm.local.loop_thread import LoopThread
from klamm.testing.faults import Links
from klamm.testing.links import Link, LinkedDialer
from tests.harness.waiting import wait_until

T = TypeVar("T")
CUT, WELL = Link(is_cut=True), Link()
SILENT_SECONDS = 0.2


class Dialled:
    """A node that dials, and on the other side somebody who listens."""

    def __init__(self, thread: LoopThread, link: Link = WELL) -> None:
        self._thread = thread
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.sockets: dict[int, socket.socket] = {}
        self.refusals: dict[int, bool] = {}
        self.dialer = self.ask(lambda: LinkedDialer(thread.loop, self, {self.address: link}))

    def dialed(self, connection: int, sock: socket.socket) -> None:
        assert sock.getpeername() == self.address
        self.sockets[connection] = sock

    def refused(self, connection: int, nobody_listens: bool) -> None:
        self.refusals[connection] = nobody_listens

    def ask(self, act: Callable[[], T]) -> T:
        def do(done: Callable[[T], None]) -> None:
            done(act())

        return self._thread.asked(do).result(10)

    def set_link(self, link: Link) -> None:
        self.ask(lambda: self.dialer.set_links({self.address: link}))

    def dial(self, connection: int = -1) -> None:
        self.ask(lambda: self.dialer.dial(connection, *self.address))

    def connected(self) -> tuple[socket.socket, socket.socket]:
        """Both ends, which wait when they are used."""
        self.dial()
        wait_until(lambda: -1 in self.sockets, "dialled")
        near, (far, _) = self.sockets[-1], self.listener.accept()
        for sock in (near, far):
            sock.settimeout(10)
        return near, far

    def close(self) -> None:
        self.ask(self.dialer.close)
        self.listener.close()
        for sock in self.sockets.values():
            sock.close()


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("links")
    yield thread
    thread.end()


@pytest.fixture
def dialled(thread: LoopThread) -> Iterator[Dialled]:
    dialled = Dialled(thread)
    yield dialled
    dialled.close()


def is_silent(sock: socket.socket) -> bool:
    """Neither bytes nor an end come for a while."""
    sock.settimeout(SILENT_SECONDS)
    try:
        sock.recv(1)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(10)
    return False


def test_what_is_said_arrives_on_both_ways(dialled: Dialled) -> None:
    near, far = dialled.connected()
    near.sendall(b"hello")
    assert far.recv(10) == b"hello"
    far.sendall(b"good day")
    assert near.recv(10) == b"good day"


def test_more_than_there_is_room_for_arrives_whole(dialled: Dialled) -> None:
    near, far = dialled.connected()
    sent = bytes(range(256)) * 40_000
    sender = threading.Thread(target=far.sendall, args=(sent,))
    sender.start()
    received = bytearray()
    while len(received) < len(sent):
        received += near.recv(1 << 20)
    sender.join()
    assert received == sent


def test_an_end_is_heard_on_the_other_side(dialled: Dialled) -> None:
    near, far = dialled.connected()
    near.sendall(b"last words")
    near.close()
    assert far.recv(20) == b"last words" and far.recv(1) == b""


def test_a_link_that_is_cut_is_silent_and_what_was_said_arrives_when_it_is_well(dialled: Dialled) -> None:
    near, far = dialled.connected()
    dialled.set_link(CUT)
    near.sendall(b"hello")
    far.sendall(b"good day")
    assert is_silent(far) and is_silent(near)
    dialled.set_link(WELL)
    assert far.recv(10) == b"hello" and near.recv(10) == b"good day"


def test_nobody_hears_over_a_cut_link_that_the_other_has_ended(dialled: Dialled) -> None:
    near, far = dialled.connected()
    dialled.set_link(CUT)
    far.close()
    assert is_silent(near)
    dialled.set_link(WELL)
    assert near.recv(1) == b""


def test_who_dials_over_a_cut_link_hears_nothing_until_it_is_well(dialled: Dialled) -> None:
    dialled.set_link(CUT)
    dialled.dial()
    time.sleep(SILENT_SECONDS)
    assert not dialled.sockets and not dialled.refusals
    dialled.set_link(WELL)
    wait_until(lambda: -1 in dialled.sockets, "dialled")


def test_an_attempt_that_nobody_answers_can_be_called_off(dialled: Dialled) -> None:
    dialled.set_link(CUT)
    dialled.dial()
    assert dialled.ask(lambda: dialled.dialer.call_off(-1))
    assert not dialled.ask(lambda: dialled.dialer.call_off(-1))
    dialled.set_link(WELL)
    dialled.dial(-2)
    wait_until(lambda: -2 in dialled.sockets, "dialled")
    assert -1 not in dialled.sockets


def test_where_nobody_listens_that_is_heard_at_once(dialled: Dialled) -> None:
    """It is the evidence that a process is dead, and no fault of the link."""
    dialled.listener.close()
    dialled.dial()
    wait_until(lambda: dialled.refusals == {-1: True}, "refused")


def test_over_a_slow_link_everything_is_late_and_in_order(dialled: Dialled) -> None:
    near, far = dialled.connected()
    dialled.set_link(Link(delay_ms=150.0))
    began = time.monotonic()
    near.sendall(b"hello")
    assert far.recv(5) == b"hello" and time.monotonic() - began >= 0.15
    far.sendall(b"good day")
    assert near.recv(8) == b"good day" and time.monotonic() - began >= 0.3
    near.sendall(b"one")
    near.sendall(b"two")
    near.close()
    said = b""
    while piece := far.recv(10):
        said += piece
    assert said == b"onetwo"


def test_what_is_late_arrives_at_once_when_the_link_is_well_again(dialled: Dialled) -> None:
    near, far = dialled.connected()
    dialled.set_link(Link(delay_ms=60_000.0))
    near.sendall(b"hello")
    assert is_silent(far)
    dialled.set_link(WELL)
    assert far.recv(5) == b"hello"


def test_every_node_sees_its_own_side_of_what_is_broken() -> None:
    links = Links({0: ("host", 1), 1: ("host", 2), 2: ("host", 3)})
    assert links.are_well
    links.cut_off([2])
    links.slow_down(0, 50.0)
    assert links.seen_from(0) == {("host", 2): Link(False, 50.0), ("host", 3): Link(True, 50.0)}
    assert links.seen_from(1) == {("host", 1): Link(False, 50.0), ("host", 3): CUT}
    assert links.unreachable_from(2) == {0, 1} and links.unreachable_from(0) == {2}
    links.heal([2])
    assert links.seen_from(1) == {("host", 1): Link(False, 50.0)} and not links.are_well
    links.heal([0, 1])
    assert links.are_well
