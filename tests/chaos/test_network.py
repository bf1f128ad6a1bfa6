"""Links between hosts of namespaces: cut, deaf, mute, resetting, and as good as new afterwards."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from klamm.chaos.network import MACHINE, Network
from klamm.chaos.problems import NoNetwork

PORT = 7_777
ECHO = f"""
import socket, sys, threading
def echo(connection):
    while data := connection.recv(100):
        connection.sendall(data)
listener = socket.create_server((sys.argv[1], {PORT}))
print("listens", flush=True)
while True:
    threading.Thread(target=echo, args=[listener.accept()[0]], daemon=True).start()
"""
SILENCE_SECONDS = 0.4
"""Who expects to hear nothing waits no longer than that. Who expects something as long as a busy machine takes."""
ANSWER_SECONDS = 60


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """Two hosts; the first one repeats what it hears."""
    with ExitStack() as stack:
        try:
            network = stack.enter_context(Network(2, "ktest"))
        except NoNetwork as problem:
            pytest.skip(str(problem))
        command = network.command_in(0, [sys.executable, "-c", ECHO, network.address(0)])
        echo = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
        stack.callback(echo.kill)
        assert echo.stdout is not None and echo.stdout.readline() == b"listens\n"
        yield network


@pytest.fixture
def line(network: Network) -> Iterator[socket.socket]:
    with socket.create_connection((network.address(0), PORT), ANSWER_SECONDS) as line:
        assert answer(line) == b"hello"
        yield line


def answer(line: socket.socket) -> bytes:
    line.sendall(b"hello")
    return line.recv(100)


@contextmanager
def ruled(network: Network, rules: list[str]) -> Iterator[None]:
    network.add_rules(0, rules)
    yield
    network.remove_rules(0, rules)


@pytest.mark.parametrize("kind", ["deaf", "mute", "cut"])
def test_what_is_not_heard_arrives_when_the_link_is_mended(network: Network, line: socket.socket, kind: str) -> None:
    deaf, mute = network.deaf_to(MACHINE), network.mute_to(MACHINE)
    with ruled(network, {"deaf": deaf, "mute": mute, "cut": deaf + mute}[kind]):
        line.settimeout(SILENCE_SECONDS)
        with pytest.raises(TimeoutError):
            answer(line)
        assert network.dropped(0) > 0
    line.settimeout(ANSWER_SECONDS)
    assert line.recv(100) == b"hello", "TCP says it again"


def test_only_the_link_that_is_meant(network: Network, line: socket.socket) -> None:
    with ruled(network, network.deaf_to(1) + network.mute_to(1)):
        assert answer(line) == b"hello"


def test_a_connection_is_reset(network: Network, line: socket.socket) -> None:
    with ruled(network, network.resetting(MACHINE)), pytest.raises(ConnectionResetError):
        answer(line)
        answer(line)


def test_a_narrow_link_is_made_wide_again_and_twice_does_no_harm(network: Network, line: socket.socket) -> None:
    network.narrow(0, 500)
    network.narrow(0, 1_000)
    assert answer(line) == b"hello"
    network.widen(0)
    network.widen(0)
    assert answer(line) == b"hello"
