"""Clusters of node processes to run Kafka's tools on: Klamm's, or Apache Kafka's where KLAMM_UNDER_TEST says so.

Every node is controller and broker in Kafka's cluster; in Klamm's it is as `klamm up` plans it.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from klamm.local.record import FILE
from tests.harness.kafka_node import KafkaNode
from tests.harness.node import Node, free_port, under_test

# As Klamm's own: Kafka's takes three times as long to notice a dead broker.
AS_KLAMM = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


class Cluster(Protocol):
    @property
    def bootstrap(self) -> str: ...
    @property
    def controllers(self) -> str:
        """Where the nodes of the quorum are reached, as `--bootstrap-controller` wants it."""
        ...

    def address(self, node_id: int) -> str: ...
    def directory(self, node_id: int) -> Path: ...
    def stop(self, node_id: int) -> None: ...
    def kill(self, node_id: int) -> None: ...
    def start(self, node_id: int) -> None:
        """Returns when the node serves clients."""
        ...

    def close(self) -> None: ...


def started_cluster(home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> Cluster:
    kind = {"klamm": KlammCluster, "kafka": KafkaCluster}[under_test()]
    return kind(home, brokers, racks, settings)


class KlammCluster:
    def __init__(self, home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> None:
        self._nodes = LocalCluster(home)
        self._record = self._nodes.up(Wish(brokers, racks, 0, settings))

    @property
    def bootstrap(self) -> str:
        return self._record.bootstrap_servers

    @property
    def controllers(self) -> str:
        return ",".join(self.address(node.node_id) for node in self._record.nodes if node.is_voter)

    def address(self, node_id: int) -> str:
        return f"{self._record.host}:{self._record.node(node_id).port}"

    def directory(self, node_id: int) -> Path:
        return self._nodes.directory / f"node-{node_id}"

    def stop(self, node_id: int) -> None:
        assert self._nodes.stop([node_id]) == [], f"node {node_id} did not stop"

    def kill(self, node_id: int) -> None:
        self._nodes.kill([node_id])

    def start(self, node_id: int) -> None:
        assert self._nodes.start([node_id]), "it serves clients"

    def close(self) -> None:
        if (self._nodes.directory / FILE).exists():
            self._nodes.kill(node.node_id for node in self._record.nodes)
            self._nodes.states()


class KafkaCluster:
    def __init__(self, home: Path, brokers: int, racks: int, settings: Mapping[str, str]) -> None:
        size, self._controller_ports = brokers // racks, [free_port() for _ in range(brokers)]
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(self._controller_ports))
        self._nodes: list[Node] = []
        for number, controller_port in enumerate(self._controller_ports):
            node = KafkaNode(home / f"node-{number}")
            node.settings = {
                "node.id": str(number),
                "broker.rack": f"R{number // size + 1}",
                "listeners": f"PLAINTEXT://{node.advertised},CONTROLLER://127.0.0.1:{controller_port}",
                "controller.quorum.voters": voters,
                **AS_KLAMM,
                **settings,
            }
            self._nodes.append(node)
        with ThreadPoolExecutor(brokers) as starters:
            list(starters.map(lambda node: node.start(), self._nodes))

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self._nodes)

    @property
    def controllers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._controller_ports)

    def address(self, node_id: int) -> str:
        return self._nodes[node_id].bootstrap

    def directory(self, node_id: int) -> Path:
        return self._nodes[node_id].dir

    def stop(self, node_id: int) -> None:
        self._nodes[node_id].stop()

    def kill(self, node_id: int) -> None:
        self._nodes[node_id].kill9()

    def start(self, node_id: int) -> None:
        self._nodes[node_id].start()

    def close(self) -> None:
        for node in self._nodes:
            node.discard()
