"""A cluster of processes for these tests: what is done to its nodes, and what must be seen of it afterwards.

Six brokers in two racks and a witness. The nodes 0, 3 and 6 vote on metadata, and so can come and go one at a time;
1, 2, 4 and 5 hold partitions only: tests that pause or kill several brokers at once take these, and the cluster goes on
deciding meanwhile.
"""

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from klamm.local.record import FILE
from tests.harness.waiting import wait_until
from tests.system.clients import Eyes, Place

VOTERS = frozenset({0, 3, 6})
R1, R2 = (0, 1, 2), (3, 4, 5)

LAG_SECONDS = 1.0
SETTINGS = {
    # Half a minute by default: who waits for a follower to leave the in-sync replicas would wait as long.
    "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
    # So that a paused follower leaves because it lags, and not because it is fenced.
    "broker.session.timeout.ms": "4000",
    "leader.imbalance.check.interval.seconds": "1",
}


class System:
    def __init__(self, directory: Path) -> None:
        self._local = LocalCluster(directory)
        self._eyes: dict[int, Eyes] = {}
        self.record = self._local.up(Wish(6, 2, 0, SETTINGS))
        self.bootstrap = self.record.bootstrap_servers

    def close(self) -> None:
        if (self._local.directory / FILE).exists():
            self._local.kill(node.node_id for node in self._local.record().nodes)
            self._local.states()

    # What is done to nodes.

    def kill(self, *nodes: int) -> None:
        self._eyes.clear()  # A client whose broker dies goes to another, which may be the next to stand still.
        self._local.kill(nodes)

    def start(self, *nodes: int) -> None:
        assert self._local.start(nodes), "they serve clients"

    def pause(self, *nodes: int) -> None:
        self._eyes.clear()
        self._local.pause(nodes)

    def resume(self, *nodes: int) -> None:
        self._local.resume(nodes)

    def heal(self) -> None:
        """All nodes run, and every broker knows of all."""
        for node, state in self._local.states():
            if state == "paused":
                self.resume(node.node_id)
        self.start(*(node.node_id for node in self.record.nodes))
        wait_until(lambda: self._seen_by_all() == set(R1 + R2), "all brokers are there")

    # What is seen.

    def running(self) -> list[int]:
        return [node.node_id for node, state in self._local.states() if state == "running" and node.is_broker]

    def address(self, broker: int) -> str:
        return f"{self.record.host}:{self.record.node(broker).port}"

    def eyes(self, broker: int | None = None) -> Eyes:
        """A client that asks this broker, or the first that runs."""
        asked = self.running()[0] if broker is None else broker
        if asked not in self._eyes:
            self._eyes[asked] = Eyes(self.address(asked))
        return self._eyes[asked]

    def place(self, topic: str, partition: int = 0) -> Place:
        return self.eyes().places(topic)[partition]

    def wait_in_sync(self, topic: str, brokers: Collection[int], within_seconds: float = 15.0) -> float:
        """Until just these are in sync, in every partition; how long that took."""
        return self.wait_places(
            topic, lambda place: place.in_sync == set(brokers), f"{brokers} in sync", within_seconds
        )

    def wait_led(self, topic: str, among: Collection[int]) -> int:
        """Until the only partition is led by one of these."""
        self.wait_places(topic, lambda place: place.leader in among, f"led by one of {among}", 15.0)
        return self.place(topic).leader

    def wait_healed(self, topic: str) -> None:
        def is_healed(place: Place) -> bool:
            return place.leader == place.replicas[0] and place.in_sync == set(place.replicas)

        self.wait_places(topic, is_healed, "in sync and led by the preferred replica", 20.0)

    def segments(self, broker: int, topic: str, partition: int = 0) -> dict[str, bytes]:
        """What lies on a broker's disk of a partition: its segments' names and bytes."""
        directory = self._local.directory / f"node-{broker}" / f"{topic}-{partition}"
        return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}

    def bytes_of(self, broker: int, topic: str) -> bytes:
        return b"".join(self.segments(broker, topic).values())

    def _seen_by_all(self) -> set[int]:
        """Whom every broker that runs knows."""
        return set.intersection(*(self.eyes(broker).brokers() for broker in self.running()))

    def wait_places(self, topic: str, holds: Callable[[Place], bool], what: str, within_seconds: float) -> float:
        """Until this holds of every partition of a topic, as every broker sees it that runs; how long that took."""
        began = time.monotonic()
        seen: list[Iterable[Place]] = [[]]

        def is_so() -> bool:
            for broker in self.running():
                seen[0] = self.eyes(broker).places(topic)
                if not all(map(holds, seen[0])):
                    return False
            return True

        try:
            wait_until(is_so, what, within_seconds)
        except AssertionError as late:
            raise AssertionError(f"{late}; {topic} stands {seen[0]}") from None
        return time.monotonic() - began
