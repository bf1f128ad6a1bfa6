"""Three brokers of one system as processes: each is broker and controller, on loopback, in a directory of its own.

Both systems run with default settings but one: a deleted topic's files go away at once instead of a minute later
(`log.segment.delete.delay.ms=0`). A measurement leaves gigabytes in three copies, and whoever comes next must not pay
for writing them back. For the harness a cluster looks like one broker: processor time, memory and stored bytes are
those of its nodes together, and stored bytes count each record once.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bench import process
from bench.systems import CLUSTER_ID, KAFKA_COMMAND, Kafka, Klamm, Node, class_path, free_ports, klamm_command

NODES = 3
SETTINGS = ("log.segment.delete.delay.ms=0",)


@dataclass(slots=True)
class Cluster:
    """Three nodes. Leaving the context kills them and removes their directory."""

    nodes: list[Node]
    directory: Path

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def start(self) -> None:
        for node in self.nodes:
            node.start()

    def is_running(self) -> bool:
        return all(node.is_running() for node in self.nodes)

    def stop(self) -> None:
        """All at once: one after the other would find nobody to hand over to in the end."""
        for node in self.nodes:
            assert node.process is not None
            node.process.terminate()
        for node in self.nodes:
            node.stop()

    def last_output(self) -> str:
        return "\n".join(node.last_output()[-700:] for node in self.nodes)

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self.nodes)

    def stored_bytes(self, topic: str) -> int:
        """Bytes of record batches on disk, each counted once: every topic has a copy on every node."""
        return sum(node.stored_bytes(topic) for node in self.nodes) // len(self.nodes)

    def memory(self) -> process.Memory:
        found = [process.memory(node.pid) for node in self.nodes]
        return process.Memory(
            resident_mib=sum(memory.resident_mib for memory in found),
            peak_mib=sum(memory.peak_mib for memory in found),
            proportional_mib=sum(memory.proportional_mib for memory in found),
        )

    def forget_peak(self) -> None:
        for node in self.nodes:
            process.forget_peak(node.pid)

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            if node.is_running():
                node.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def prepared(system: Kafka | Klamm, directory: Path) -> Cluster:
    shutil.rmtree(directory, ignore_errors=True)
    places = [directory / f"node-{number}" for number in range(NODES)]
    for place in places:
        place.mkdir(parents=True)
    nodes = _kafka(system, places) if isinstance(system, Kafka) else _klamm(system, places)
    return Cluster(nodes, directory)


def _klamm(system: Klamm, places: list[Path]) -> list[Node]:
    ports = free_ports(NODES)
    quorum = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports))
    options = ["--quorum", quorum]
    for setting in (*SETTINGS, *system.settings):
        options += ["--set", setting]
    return [
        Node([*klamm_command(number, port, place), *options], place, port)
        for number, (port, place) in enumerate(zip(ports, places, strict=True))
    ]


def _kafka(system: Kafka, places: list[Path]) -> list[Node]:
    free = free_ports(2 * NODES)
    ports, controller_ports = free[:NODES], free[NODES:]
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controller_ports))
    nodes = []
    formatting = []
    for number, place in enumerate(places):
        properties = place / "server.properties"
        lines = [
            "process.roles=broker,controller",
            f"node.id={number}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://127.0.0.1:{ports[number]},CONTROLLER://127.0.0.1:{controller_ports[number]}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={place / 'data'}",
            *SETTINGS,
            *system.settings,
        ]
        properties.write_text("\n".join(lines) + "\n")
        command = ["java", "-Xmx256M", "-cp", class_path(), "kafka.tools.StorageTool"]
        command += ["format", "--cluster-id", CLUSTER_ID, "--config", str(properties)]
        formatting.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        nodes.append(Node([*KAFKA_COMMAND, "-cp", class_path(), "kafka.Kafka", str(properties)], place, ports[number]))
    for child in formatting:
        if child.wait() != 0:
            raise subprocess.CalledProcessError(child.returncode, "kafka.tools.StorageTool format")
    return nodes
