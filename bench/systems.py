"""The two systems as processes: how each is prepared, started, stopped and killed.

Both get a fresh data directory on the same file system and listen on loopback. Kafka runs one combined broker and
controller with default settings and the memory and collector options of `kafka-server-start.sh`; formatting its
directory is preparation and not part of any figure. Its logging goes nowhere (the jars hold slf4j-nop), which can only
help it. Klamm runs with default settings too.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

from bench import process

ROOT = Path(__file__).resolve().parent.parent
JVM_OPTIONS = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip
KAFKA_COMMAND = ("java", "-Xmx1G", "-Xms1G", *JVM_OPTIONS)
STOP_SECONDS = 600
CLUSTER_ID = "a2xhbW0tYmVuY2htYXJrIQ"  # sixteen bytes in base 64, as Kafka wants it: "klamm-benchmark!"


class NotAvailableError(Exception):
    """Something this benchmark needs is missing here: jars, Java, or Klamm itself."""


class System(Protocol):
    """A system that can be prepared in an empty directory and then started there, again and again."""

    @property
    def name(self) -> str: ...

    def prepare(self, directory: Path) -> "Node": ...


class Watchable(Protocol):
    """What a client can be pointed at and watched beside: one broker, or a cluster of them."""

    @property
    def address(self) -> str: ...

    def cpu_seconds(self) -> float: ...

    def stored_bytes(self, topic: str) -> int: ...


@dataclass(slots=True)
class Node:
    """One broker: its command, its directory, and its process while it runs. Leaving the context kills it."""

    command: list[str]
    directory: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def pid(self) -> int:
        assert self.process is not None, "the node has not been started"
        return self.process.pid

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        with (self.directory / "output.txt").open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=ROOT
            )

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """The clean way: SIGTERM, and wait."""
        assert self.process is not None
        self.process.terminate()
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_SECONDS)

    def last_output(self) -> str:
        return (self.directory / "output.txt").read_text(errors="replace")[-2000:]

    def cpu_seconds(self) -> float:
        return process.cpu_seconds(self.pid)

    def stored_bytes(self, topic: str) -> int:
        """Bytes of record batches on disk, which is Kafka's format in both systems."""
        directories = (self.directory / "data").glob(f"{topic}-[0-9]*")
        return sum(segment.stat().st_size for directory in directories for segment in directory.glob("*.log"))

    def __enter__(self) -> "Node":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running():
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Kafka:
    """Apache Kafka from the jars in `.jars/kafka` (or where KLAMM_KAFKA_JARS says)."""

    name: str = "kafka"
    settings: tuple[str, ...] = ()

    def prepare(self, directory: Path) -> Node:
        port, controller_port = free_ports(2)
        _make_empty(directory)
        properties = directory / "server.properties"
        lines = [
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names=CONTROLLER",
            f"log.dirs={directory / 'data'}",
            # Three copies of the internal topics cannot exist on one node; the shipped server.properties says the same.
            "offsets.topic.replication.factor=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            *self.settings,
        ]
        properties.write_text("\n".join(lines) + "\n")
        format_command = [
            "java", "-Xmx256M", "-cp", class_path(), "kafka.tools.StorageTool",
            "format", "--cluster-id", CLUSTER_ID, "--config", str(properties),
        ]  # fmt: skip
        subprocess.run(format_command, check=True, stdout=subprocess.DEVNULL)
        return Node(
            command=[*KAFKA_COMMAND, "-cp", class_path(), "kafka.Kafka", str(properties)],
            directory=directory,
            port=port,
        )


@dataclass(frozen=True, slots=True)
class Klamm:
    name: str = "klamm"
    settings: tuple[str, ...] = ()

    def prepare(self, directory: Path) -> Node:
        (port,) = free_ports(1)
        _make_empty(directory)
        command = klamm_command(0, port, directory)
        for setting in self.settings:
            command += ["--set", setting]
        return Node(command=command, directory=directory, port=port)


def klamm_command(number: int, port: int, directory: Path) -> list[str]:
    command = [sys.executable, "-m", "klamm", "broker", "--id", str(number), "--listen", f"127.0.0.1:{port}"]
    return [*command, "--dir", str(directory / "data")]


def jars_directory() -> Path:
    directory = Path(os.environ.get("KLAMM_KAFKA_JARS", ROOT / ".jars" / "kafka"))
    if shutil.which("java") is None:
        raise NotAvailableError("the benchmark runs Apache Kafka and its clients: it needs java (17 or later)")
    if not any(directory.glob("kafka-clients-*.jar")):
        raise NotAvailableError("no Kafka jars in .jars/kafka: fetch them, or name their directory in KLAMM_KAFKA_JARS")
    return directory


def class_path() -> str:
    return f"{jars_directory()}/*"


def free_ports(count: int) -> list[int]:
    """Ports that are free now. Held together until all are known, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


def _make_empty(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
