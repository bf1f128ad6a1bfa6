"""Where the brokers of a run stand: each on a host of its own, or, where that cannot be, all on the loopback interface.

On loopback nothing can be done to links. The run says so, and does the rest.
"""

from collections.abc import Sequence

from klamm.chaos.network import Network
from klamm.local.asking import Address
from klamm.local.ports import HeldPorts

PORT = 9092
LOOPBACK = "127.0.0.1"


class Hosts:
    """On a network of namespaces."""

    def __init__(self, network: Network, count: int) -> None:
        self.network = network
        self.addresses = [Address(network.address(host), PORT) for host in range(count)]

    def command_in(self, host: int, command: list[str]) -> list[str]:
        return self.network.command_in(host, command)


class Loopback:
    """Ports of this machine, held for as long as the run lasts, so that a broker that is down keeps its own."""

    def __init__(self, count: int) -> None:
        self._held = HeldPorts(LOOPBACK, [0] * count)
        self.addresses = [Address(LOOPBACK, port) for port in self._held.ports]

    def __enter__(self) -> "Loopback":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.let_go()

    def command_in(self, host: int, command: list[str]) -> list[str]:
        return command


Places = Hosts | Loopback


def bootstrap_of(addresses: Sequence[Address]) -> str:
    return ",".join(map(str, addresses))
