"""Clusters of node processes to run Kafka's tools on: Klamm's, or Apache Kafka's where KLAMM_UNDER_TEST says so.

Every node is controller and broker in Kafka's cluster; in Klamm's it is as `klamm up` plans it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from tests.harness.kafka_node import KafkaNode
from tests.harness.node import free_port, under_test

# Of Kafka, as Klamm's own: with its own ones it would take three times as long to notice a dead broker.
AS_KLAMM = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


def started_cluster(home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> "Cluster":
    if under_test() == "kafka":
        return KafkaCluster(home, brokers, racks, settings)
    return KlammCluster(home, brokers, racks, settings)


class Cluster(ABC):
    """Brokers 0, 1, 2, …, in blocks per rack R1, R2, …"""

    def __init__(self, brokers: int) -> None:
        self.brokers = range(brokers)
        self.down: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, self.brokers))

    @property
    @abstractmethod
    def controllers(self) -> str:
        """Where the nodes of the quorum are reached, as `--bootstrap-controller` wants it."""

    @abstractmethod
    def address(self, broker_id: int) -> str: ...

    @abstractmethod
    def directory(self, broker_id: int) -> Path: ...

    def stop(self, broker_id: int) -> None:
        self._stop(broker_id)
        self.down.add(broker_id)

    def kill(self, broker_id: int) -> None:
        self._kill(broker_id)
        self.down.add(broker_id)

    def start(self, broker_id: int) -> None:
        """Returns when the node serves clients."""
        self._start(broker_id)
        self.down.remove(broker_id)

    def start_all(self) -> None:
        for broker_id in sorted(self.down):
            self.start(broker_id)

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _stop(self, broker_id: int) -> None: ...

    @abstractmethod
    def _kill(self, broker_id: int) -> None: ...

    @abstractmethod
    def _start(self, broker_id: int) -> None: ...


class KlammCluster(Cluster):
    def __init__(self, home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> None:
        super().__init__(brokers)
        self._nodes = LocalCluster(home)
        self._record = self._nodes.up(Wish(brokers, racks, 0, settings))

    @property
    def controllers(self) -> str:
        return ",".join(self.address(node.node_id) for node in self._record.nodes if node.is_voter)

    def address(self, broker_id: int) -> str:
        return f"{self._record.host}:{self._record.node(broker_id).port}"

    def directory(self, broker_id: int) -> Path:
        return self._nodes.directory / f"node-{broker_id}"

    def close(self) -> None:
        self._nodes.kill(node.node_id for node in self._record.nodes)
        self._nodes.states()

    def _stop(self, broker_id: int) -> None:
        assert self._nodes.stop([broker_id]) == [], f"node {broker_id} did not stop"

    def _kill(self, broker_id: int) -> None:
        self._nodes.kill([broker_id])

    def _start(self, broker_id: int) -> None:
        assert self._nodes.start([broker_id]), "it serves clients"


class KafkaCluster(Cluster):
    def __init__(self, home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> None:
        super().__init__(brokers)
        self._nodes = [KafkaNode(home / f"node-{number}") for number in self.brokers]
        self._controllers = [f"127.0.0.1:{free_port()}" for _ in self.brokers]
        for number, (node, controller) in enumerate(zip(self._nodes, self._controllers, strict=True)):
            node.settings = {
                "node.id": str(number),
                "broker.rack": f"R{number * racks // brokers + 1}",
                "listeners": f"PLAINTEXT://{node.advertised},CONTROLLER://{controller}",
                "controller.quorum.voters": ",".join(f"{n}@{each}" for n, each in enumerate(self._controllers)),
                **AS_KLAMM,
                **settings,
            }
        with ThreadPoolExecutor(brokers) as starters:
            list(starters.map(KafkaNode.start, self._nodes))

    @property
    def controllers(self) -> str:
        return ",".join(self._controllers)

    def address(self, broker_id: int) -> str:
        return self._nodes[broker_id].bootstrap

    def directory(self, broker_id: int) -> Path:
        return self._nodes[broker_id].dir

    def close(self) -> None:
        for node in self._nodes:
            node.discard()

    def _stop(self, broker_id: int) -> None:
        self._nodes[broker_id].stop()

    def _kill(self, broker_id: int) -> None:
        self._nodes[broker_id].kill9()

    def _start(self, broker_id: int) -> None:
        self._nodes[broker_id].start()
