"""Apache Kafka as a process: one KRaft node, broker and controller at once, from the jars of `tools/kafka`.

Group and transaction coordinators are kept from ever coming up (their topics ask for three replicas), because Klamm
does not have them yet: what passes here needs neither.
"""

import os
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from tests.harness.node import Node, free_port

JVM = ["java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
CLUSTER_ID = "a2xhbW0tdGVzdHMtMDAwMQ"
NO_COORDINATORS = {"offsets.topic.replication.factor": "3", "transaction.state.log.replication.factor": "3"}


def jar_directory() -> Path:
    """Where Kafka's jars are: KLAMM_KAFKA_JARS, else `.jars/kafka`, filled by `tools/kafka/fetch.sh`."""
    given = os.environ.get("KLAMM_KAFKA_JARS")
    return Path(given) if given else Path(__file__).parents[2] / ".jars" / "kafka"


def skip_without_kafka() -> None:
    """Skips the calling test, with the reason, where Java or Kafka's jars are missing."""
    if shutil.which("java") is None:
        pytest.skip("needs Java 17 or later (`java` is not on the PATH)")
    if not any(jar_directory().glob("kafka-clients-*.jar")):
        pytest.skip("needs Kafka's jars: run tools/kafka/fetch.sh or set KLAMM_KAFKA_JARS")


class KafkaNode(Node):
    def prepare(self) -> None:
        """Writes the properties and, for an empty directory, formats it as `kafka-storage format` does."""
        skip_without_kafka()
        properties = self.home / "server.properties"
        if properties.exists():
            return
        controller_port = free_port()
        values = {
            "node.id": "0",
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.advertised}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"0@127.0.0.1:{controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.dir),
            **NO_COORDINATORS,
            **self.settings,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        shape = ["format", "--cluster-id", CLUSTER_ID, "--config", str(properties)]
        subprocess.run([*self.java("kafka.tools.StorageTool"), *shape], check=True, capture_output=True)

    def command(self) -> list[str]:
        return [*self.java("kafka.Kafka"), str(self.home / "server.properties")]

    def java(self, main_class: str) -> list[str]:
        return [*JVM, "-cp", f"{jar_directory()}/*", main_class]

    def wait_ready(self, deadline: float) -> None:
        """The socket opens before the broker is unfenced, so ask for metadata until it lists the broker."""
        self.wait_accepting(deadline)
        while not _lists_a_broker(self.port):
            assert time.monotonic() < deadline, f"{self} did not get ready:\n{self.log}"
            time.sleep(0.05)


def _lists_a_broker(port: int) -> bool:
    """Metadata version 1 for no topics, by hand: are there brokers in the answer?"""
    request = struct.pack(">hhihi", 3, 1, 7, -1, 0)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb").read(12)
    return len(answer) == 12 and struct.unpack(">iii", answer)[2] > 0
