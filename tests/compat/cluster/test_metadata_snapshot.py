"""A running cluster's snapshots of its metadata, read by Kafka's dump tool and walked through with Kafka's shell."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.compat.java_tools import JavaTools
from tests.harness.kafka_node import JVM, jar_directory
from tests.harness.waiting import wait_until

TOPICS = [f"topic-{number:02}" for number in range(24)]
EARLY = {"metadata.log.max.record.bytes.between.snapshots": "2000"}


@pytest.fixture(scope="module")
def snapping(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that takes a snapshot whenever a few topics were created."""
    running = started_cluster(tmp_path_factory.mktemp("snapping") / "cluster", brokers=3, racks=1, settings=EARLY)
    admin = Admin(tools, running)
    for topic in TOPICS:
        admin.topics("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "3").checked()
    yield running
    running.close()


def test_every_nodes_snapshot_holds_the_topics(snapping: Cluster, tools: JavaTools) -> None:
    for broker_id in snapping.brokers:
        dumped = Admin(tools, snapping).dumped(_snapshot(snapping, broker_id))
        assert "isvalid: false" not in dumped and "rror" not in dumped
        assert "SnapshotHeader" in dumped and "SnapshotFooter" in dumped
        records = [json.loads(line.partition("payload: ")[2]) for line in dumped.splitlines() if "payload: {" in line]
        names = [record["data"]["name"] for record in records if record["type"] == "TOPIC_RECORD"]
        assert set(TOPICS[:4]) <= set(names) and len(names) == len(set(names))
        registered = [record["data"] for record in records if record["type"] == "REGISTER_BROKER_RECORD"]
        assert {(each["brokerId"], each["rack"], each["fenced"]) for each in registered} == {
            (number, "R1", False) for number in snapping.brokers
        }


def test_metadata_shell_walks_through_a_snapshot(snapping: Cluster, tmp_path: Path) -> None:
    """In a process of its own: it closes the standard output when it is done."""
    if not any(jar_directory().glob("kafka-shell-*.jar")):
        pytest.skip("needs kafka-shell beside Kafka's other jars")
    # A copy: the shell locks the directory it reads from, and a node's is locked.
    copied = tmp_path / "metadata" / _snapshot(snapping, 0).name
    copied.parent.mkdir()
    shutil.copy(_snapshot(snapping, 0), copied)
    shell = [*JVM, "-cp", f"{jar_directory()}/*", "org.apache.kafka.shell.MetadataShell", "--snapshot", str(copied)]
    wanted = [f"BrokerRegistration(id={number}, " for number in snapping.brokers]
    wanted += [*(f"    {topic}:\n" for topic in TOPICS[:4]), "leaderRecoveryState=RECOVERED"]

    def shows_everything() -> bool:
        ran = subprocess.run([*shell, "tree", "/image"], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, ran.stderr
        return all(part in ran.stdout for part in wanted)

    # More than once: now and then it answers before it has read the file.
    wait_until(shows_everything, f"the shell shows {wanted}", within_seconds=60)


def _snapshot(cluster: Cluster, broker_id: int) -> Path:
    """The newest one, of a few topics at least. One that is being written has another name."""
    directory = cluster.directory(broker_id) / "__cluster_metadata-0"

    def found() -> list[Path]:
        return sorted(path for path in directory.glob("*.checkpoint") if int(path.name[:20]) >= 40)

    wait_until(lambda: bool(found()), f"broker {broker_id} takes a snapshot")
    return found()[-1]
