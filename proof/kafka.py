"""Apache Kafka beside us: three nodes from the jars, each broker and controller, with default settings.

The memory and collector options are those of `kafka-server-start.sh`, the storage is formatted beforehand. The few
settings given are those without which three nodes are no cluster.
"""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from bench.systems import CLUSTER_ID, JVM_OPTIONS, class_path, free_ports

from proof.cluster import Waits

NODES = (0, 1, 2)


class Kafka(Waits):
    name = "kafka"

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="kafka-proof-"))
        ports = free_ports(2 * len(NODES))
        self._ports = dict(zip(NODES, ports, strict=False))
        self._controller_ports = dict(zip(NODES, ports[len(NODES) :], strict=True))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Kafka":
        for node_id in NODES:
            self._format(node_id)
        self.start(NODES)
        self.wait_until(lambda: all(len(self.known_brokers(node_id)) == 3 for node_id in NODES), "Kafka is not up", 120)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill(self.running)
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    @property
    def running(self) -> list[int]:
        return [node_id for node_id, process in self._processes.items() if process.poll() is None]

    def port(self, node_id: int) -> int:
        return self._ports[node_id]

    def kill(self, node_ids: Iterable[int]) -> None:
        for node_id in node_ids:
            self._processes[node_id].send_signal(signal.SIGKILL)
            self._processes[node_id].wait()

    def start(self, node_ids: Iterable[int]) -> None:
        for node_id in node_ids:
            command = ["java", "-Xmx1G", "-Xms1G", *JVM_OPTIONS, "-cp", class_path(), "kafka.Kafka"]
            with (self.directory / f"{node_id}.txt").open("ab") as output:
                self._processes[node_id] = subprocess.Popen(
                    [*command, str(self._properties(node_id))], stdout=output, stderr=output
                )

    def _properties(self, node_id: int) -> Path:
        return self.directory / f"{node_id}.properties"

    def _format(self, node_id: int) -> None:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controller_ports.items())
        own, controller = self._ports[node_id], self._controller_ports[node_id]
        lines = [
            "process.roles=broker,controller",
            f"node.id={node_id}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={self.directory / str(node_id)}",
        ]
        self._properties(node_id).write_text("\n".join(lines) + "\n")
        command = ["java", "-Xmx256M", "-cp", class_path(), "kafka.tools.StorageTool", "format"]
        command += ["--cluster-id", CLUSTER_ID, "--config", str(self._properties(node_id))]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
