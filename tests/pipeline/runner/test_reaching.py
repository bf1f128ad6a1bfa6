"""A cluster that goes away in the middle of a batch, and comes back: both are said, once."""

import socket

from klamm.local.ports import HeldPorts
from klamm.pipeline.reaching import Reaching
from tests.harness.waiting import wait_until

OFTEN = 0.02


def listening(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port))


def test_silence_and_its_end_are_said() -> None:
    said: list[str] = []
    with HeldPorts("127.0.0.1", [0, 0]) as held:
        absent, port = held.ports
        broker = listening(port)
        with Reaching(f"127.0.0.1:{absent}, 127.0.0.1:{port}", said.append, OFTEN):
            broker.settimeout(10)
            broker.accept()[0].close()
            broker.accept()[0].close()
            assert said == [], "one of two is enough"
            broker.close()
            wait_until(lambda: bool(said), "silence is noticed")
            assert said[0].startswith(f"no broker answers at 127.0.0.1:{absent}, 127.0.0.1:{port}.")
            with listening(port):
                wait_until(lambda: len(said) == 2, "the return is noticed")
    assert said[1].startswith("the cluster answers again, after ")
