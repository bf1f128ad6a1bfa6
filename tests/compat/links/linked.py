"""Three brokers, each on a host of its own, and what clients on the machine see of them."""

import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path

from klamm.local.asking import Address
from klamm.local.view import cluster_seen
from tests.compat.links.network import Network
from tests.harness.waiting import wait_until
from tests.system.clients import Eyes, Place

PORT = 9092
BROKERS = range(3)
LAG_SECONDS = 1.5
SETTINGS = {
    "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
    "leader.imbalance.check.interval.seconds": "1",
    "min.insync.replicas": "2",
}


class Linked:
    def __init__(self, network: Network, directory: Path) -> None:
        self.network = network
        self._directory = directory
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap = ",".join(self.address(broker) for broker in BROKERS)

    def __enter__(self) -> "Linked":
        try:
            for broker in BROKERS:
                self._start(broker)
            for broker in BROKERS:
                wait_until(lambda b=broker: self._knows_all(b), f"broker {broker} knows all", 30.0)  # type: ignore[misc]
        except BaseException:
            self.close()
            raise
        self._eyes = {broker: Eyes(self.address(broker)) for broker in BROKERS}
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(20)

    # What is seen.

    def address(self, broker: int) -> str:
        return f"{self.network.address(broker)}:{PORT}"

    def controller(self) -> int:
        """The node that decides; while there is none, it is waited for."""
        addresses = [Address(self.network.address(broker), PORT) for broker in BROKERS]
        wait_until(lambda: cluster_seen(addresses, 5.0).controller is not None, "there is a controller")
        found = cluster_seen(addresses, 5.0).controller
        assert found is not None
        return found

    def eyes(self, broker: int) -> Eyes:
        """A client that asks this broker."""
        return self._eyes[broker]

    def wait_in_sync(self, topic: str, brokers: Collection[int], *, asked: int, within_seconds: float = 30.0) -> float:
        """Until just these are in sync, as one of them says; how long that took."""
        return self.wait_place(topic, lambda place: place.in_sync == set(brokers), asked, f"{brokers}", within_seconds)

    def wait_place(
        self, topic: str, holds: Callable[[Place], bool], asked: int, what: str, within_seconds: float = 30.0
    ) -> float:
        began = time.monotonic()
        try:
            wait_until(lambda: holds(self.eyes(asked).places(topic)[0]), what, within_seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self.eyes(asked).places(topic)}") from None
        return time.monotonic() - began

    def segments(self, broker: int, topic: str) -> dict[str, bytes]:
        directory = self._directory / f"node-{broker}" / f"{topic}-0"
        return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}

    def _start(self, broker: int) -> None:
        quorum = ",".join(f"{each}@{self.address(each)}" for each in BROKERS)
        command = [sys.executable, "-P", "-m", "klamm", "broker", "--id", str(broker)]
        command += ["--listen", self.address(broker), "--dir", str(self._directory / f"node-{broker}")]
        command += ["--quorum", quorum, "--roles", "broker,controller", "--cluster-id", "AAAAAAAAQACAAAAAAAAAAQ"]
        for name, value in SETTINGS.items():
            command += ["--set", f"{name}={value}"]
        with (self._directory / f"node-{broker}.log").open("ab") as log:
            # `ip netns exec` becomes the command: the number is the broker's.
            self._processes[broker] = subprocess.Popen(
                self.network.command_in(broker, command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _knows_all(self, broker: int) -> bool:
        assert self._processes[broker].poll() is None, (self._directory / f"node-{broker}.log").read_text()
        try:
            seen = cluster_seen([Address(self.network.address(broker), PORT)], 2.0)
        except Exception:
            return False
        return sum(not each.is_fenced for each in seen.brokers) == len(BROKERS)
