"""Kafka's tools bound to a cluster, and what they print read back into values.

A tool asks any broker. What one has answered another may learn a moment later, so tests wait for what they expect.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tests.compat.cluster.clusters import Cluster
from tests.compat.java_tools import JavaTools, Ran
from tests.harness.waiting import wait_until

TOOLS = "org.apache.kafka.tools."
CLUSTER_TOOL = f"{TOOLS}ClusterTool"
QUORUM_TOOL = f"{TOOLS}MetadataQuorumCommand"
NOBODY = "none"


@dataclass(frozen=True)
class Described:
    """One line of `kafka-topics --describe`."""

    partition: int
    leader: str
    replicas: list[int]
    in_sync: set[int]
    eligible: set[int]


class Admin:
    def __init__(self, tools: JavaTools, cluster: Cluster) -> None:
        self._tools = tools
        self._cluster = cluster

    # Topics.

    def create(self, topic: str, placement: str, **configs: str) -> None:
        """Placed as `--replica-assignment` says it, "0:1,1:2"; returns when every replica is in sync."""
        settings = [
            word for name, value in configs.items() for word in ("--config", f"{name.replace('_', '.')}={value}")
        ]
        self.topics("--create", "--topic", topic, "--replica-assignment", placement, *settings).checked()
        self.wait_in_sync(topic, *(set(map(int, each.split(":"))) for each in placement.split(",")))

    def described(self, topic: str, *which: str) -> list[Described]:
        """The partitions, or those of them that an option like `--unavailable-partitions` leaves."""
        shown = self.topics("--describe", "--topic", topic, *which).checked()
        return [_described(line) for line in shown.splitlines() if line.startswith("\t")]

    def wait_in_sync(self, topic: str, *in_sync: set[int]) -> None:
        wait_until(
            lambda: (
                self.topics("--describe", "--topic", topic).code == 0
                and [each.in_sync for each in self.described(topic)] == list(in_sync)
            ),
            f"{in_sync} are in sync",
            within_seconds=30,
        )

    def wait_leaders(self, topic: str, *leaders: str) -> None:
        wait_until(lambda: [each.leader for each in self.described(topic)] == list(leaders), f"{leaders} lead")

    def sizes(self, topic: str) -> dict[int, dict[int, int]]:
        """Of each broker that holds some of it, the bytes of its partitions."""
        shown = self.tool("LogDirsCommand", "--describe", "--topic-list", topic).checked()
        found = {
            each["broker"]: {
                int(part["partition"].rpartition("-")[2]): part["size"]
                for directory in each["logDirs"]
                for part in directory["partitions"]
            }
            for each in json.loads(shown.splitlines()[-1])["brokers"]
        }
        return {broker: parts for broker, parts in found.items() if parts}

    # The tools.

    def topics(self, *arguments: str) -> Ran:
        return self.tool("TopicCommand", *arguments)

    def configs(self, *arguments: str) -> Ran:
        return self._tools.run("kafka.admin.ConfigCommand", *self._server, *arguments)

    def reassign(self, *arguments: str) -> Ran:
        return self.tool("reassign.ReassignPartitionsCommand", *arguments)

    def elect(self, kind: str, *arguments: str) -> Ran:
        return self.tool("LeaderElectionCommand", "--election-type", kind, *arguments)

    def quorum(self, *arguments: str) -> Ran:
        return self.tool("MetadataQuorumCommand", *arguments)

    def cluster(self, command: str, *arguments: str) -> Ran:
        return self._tools.run(CLUSTER_TOOL, command, *self._server, *arguments)

    def offsets(self, topic: str, *arguments: str) -> str:
        return self.tool("GetOffsetShell", "--topic", topic, *arguments).checked().strip()

    def tool(self, name: str, *arguments: str) -> Ran:
        return self._tools.run(TOOLS + name, *self._server, *arguments)

    def at_controllers(self, tool: str, *arguments: str) -> Ran:
        """Asked with `--bootstrap-controller`, which one tool wants before its command and another behind it."""
        where = ["--bootstrap-controller", self._cluster.controllers]
        words = [*arguments, *where] if tool == CLUSTER_TOOL else [*where, *arguments]
        return self._tools.run(tool, *words)

    def dumped(self, file: Path) -> str:
        return self._tools.run(f"{TOOLS}DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file)).checked()

    @property
    def _server(self) -> list[str]:
        return ["--bootstrap-server", self._cluster.bootstrap]


def _described(line: str) -> Described:
    fields = dict(re.findall(r"(\w[\w ]*): ?([^\t]*)", line))
    return Described(
        int(fields["Partition"]),
        fields["Leader"],
        _numbers(fields["Replicas"]),
        set(_numbers(fields["Isr"])),
        set(_numbers(fields["Elr"])),
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]
