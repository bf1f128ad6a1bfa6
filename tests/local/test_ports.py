"""Ports that are held for nodes about to start."""

import socket

import pytest

from klamm.local.ports import HeldPorts, ports_from
from klamm.local.problems import LocalError, PortsTaken


def listening(port: int) -> socket.socket:
    """As a node listens: with SO_REUSEADDR, which `create_server` sets."""
    return socket.create_server(("127.0.0.1", port))


def test_a_node_may_listen_on_a_port_that_is_held_for_it() -> None:
    with HeldPorts("127.0.0.1", [0]) as held, listening(held.ports[0]):
        socket.create_connection(("127.0.0.1", held.ports[0])).close()


def test_a_held_port_is_given_to_nobody_else_and_refuses() -> None:
    with HeldPorts("127.0.0.1", [0, 0, 0]) as held:
        assert len(set(held.ports)) == 3
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", held.ports[0]))
        stranger = socket.socket()
        with stranger, pytest.raises(OSError, match="in use"):
            stranger.bind(("127.0.0.1", held.ports[0]))


def test_all_ports_that_are_taken_are_named_and_none_is_kept() -> None:
    with listening(0) as one, listening(0) as two:
        taken = [one.getsockname()[1], two.getsockname()[1]]
        with HeldPorts("127.0.0.1", [0]) as free:
            (port,) = free.ports
        with pytest.raises(PortsTaken) as problem:
            HeldPorts("127.0.0.1", [port, *taken])
        assert problem.value.ports == taken and "--port" in str(problem.value)
    plain = socket.socket()
    with plain:
        plain.bind(("127.0.0.1", port))


def test_a_port_that_is_taken_gives_way_to_its_second_choice_and_that_to_any() -> None:
    # Held and not listened on, they are free to us and to nobody else.
    with HeldPorts("127.0.0.1", [0, 0]) as free, listening(0) as one, listening(0) as two:
        first, second = free.ports
        taken, also_taken = one.getsockname()[1], two.getsockname()[1]
        with HeldPorts.preferred("127.0.0.1", [first, taken, taken], [0, second, also_taken]) as held:
            assert held.ports[:2] == [first, second]
            assert held.ports[2] not in (0, first, second, taken, also_taken)


def test_ports_count_upwards_from_the_first() -> None:
    assert ports_from(19092, 3) == [19092, 19093, 19094]
    assert ports_from(0, 2) == [0, 0]


@pytest.mark.parametrize("first", [-1, 65_535, 70_000])
def test_ports_that_do_not_exist(first: int) -> None:
    with pytest.raises(LocalError, match="65535"):
        ports_from(first, 2)
