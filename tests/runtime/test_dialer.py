"""Dialling, over real sockets."""

import errno
import socket
import threading
from collections.abc import Iterator

import pytest

from klamm.runtime.dialer import Dialer
from klamm.runtime.loop import Loop


class Waiting:
    """Hears how each attempt ended, and stops the loop after the first."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.dialer = Dialer(self.loop, self)
        self.ended: list[tuple[int, str]] = []

    def dialed(self, connection: int, sock: socket.socket) -> None:
        sock.close()
        self.ended.append((connection, "there"))
        self.loop.stop()

    def refused(self, connection: int, nobody_listens: bool) -> None:
        self.ended.append((connection, "nobody" if nobody_listens else "unreachable"))
        self.loop.stop()

    def run(self) -> None:
        watchdog = threading.Timer(10.0, self.loop.stop)
        watchdog.start()
        self.loop.run()
        watchdog.cancel()
        watchdog.join()


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    waiting = Waiting()
    yield waiting
    waiting.dialer.close()
    waiting.loop.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_somebody_listens(waiting: Waiting, host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        waiting.dialer.dial(-1, host, listener.getsockname()[1])
        waiting.run()
    assert waiting.ended == [(-1, "there")], "also where a name has an address of six at which nobody listens"


def test_nobody_listens(waiting: Waiting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    waiting.dialer.dial(-1, "127.0.0.1", port)
    waiting.run()
    assert waiting.ended == [(-1, "nobody")]


def test_a_name_that_nobody_knows_is_unreachable(waiting: Waiting) -> None:
    waiting.dialer.dial(-1, "no-such-host.invalid", 9092)
    waiting.run()
    assert waiting.ended == [(-1, "unreachable")]


@pytest.mark.parametrize("host", ["a..b", "x" * 64, ".example.com"])
def test_a_host_that_is_no_name_at_all_is_unreachable(waiting: Waiting, host: str) -> None:
    """Python refuses to encode it, with an error of another kind. A broker may have registered it all the same, and
    every controller dials every broker."""
    waiting.dialer.dial(-1, host, 9092)
    waiting.run()
    assert waiting.ended == [(-1, "unreachable")]


def test_to_be_out_of_descriptors_passes_and_says_nothing_of_the_other_side(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_descriptors(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("klamm.runtime.dialer.socket.socket", out_of_descriptors)
        waiting.dialer.dial(-1, "127.0.0.1", 9092)
    assert waiting.ended == [], "it is told later, not from within the step that dialled"
    waiting.run()
    assert waiting.ended == [(-1, "unreachable")]


def test_an_attempt_that_was_called_off_is_not_heard_of_again(waiting: Waiting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        waiting.dialer.dial(-1, "127.0.0.1", listener.getsockname()[1])
        assert waiting.dialer.call_off(-1)
        assert not waiting.dialer.call_off(-1)
        waiting.dialer.dial(-2, "127.0.0.1", listener.getsockname()[1])
        waiting.run()
    assert waiting.ended == [(-2, "there")]
