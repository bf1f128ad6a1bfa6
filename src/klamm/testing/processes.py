"""The cluster behind `klamm_cluster`: a process a node, each with a line to the test that started it.

Their ports stay held while the cluster is there, so that nobody else is given the port of a broker that is down.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from klamm.local.agreeing import Wish, properties_of
from klamm.local.cluster import LocalCluster
from klamm.local.ports import HeldPorts
from klamm.local.processes import State, started
from klamm.local.record import ClusterRecord, NodeRecord
from klamm.testing.control import NodeLine
from klamm.testing.links import Address, Link
from klamm.testing.problems import NotPossible
from klamm.testing.shape import Shape
from klamm.testing.under_test import ClusterUnderTest


class ProcessCluster(ClusterUnderTest):
    """`klamm_cluster`"""

    def __init__(self, shape: Shape, directory: Path) -> None:
        self._directory = directory
        self._nodes = NodesUnderTest(directory)
        try:
            record = self._nodes.up(Wish(shape.brokers, shape.racks, 0, shape.settings))
        except BaseException:
            self._nodes.let_go()
            raise
        super().__init__(record)

    def states(self) -> dict[int, State]:
        return {node.node_id: state for node, state in self._nodes.states() if node.is_broker}

    def _said(self, broker: int) -> Iterator[str]:
        with (
            contextlib.suppress(FileNotFoundError),
            self._nodes.log_of(broker).open(encoding="utf-8", errors="replace") as log,
        ):
            for line in log:
                yield line.rstrip("\n")

    def _pause(self, broker: int) -> None:
        self._nodes.pause([broker])

    def _resume(self, broker: int) -> None:
        self._nodes.resume([broker])

    def close(self) -> None:
        """End everything at once; what the nodes have written goes with them."""
        self._nodes.end()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _kill(self, broker: int) -> None:
        self._nodes.kill([broker])

    def _stop(self, broker: int) -> None:
        if self._nodes.stop([broker]):
            raise NotPossible(f"broker {broker} does not stop: is there still a majority it could hand over to?")

    def _start(self, brokers: Sequence[int]) -> None:
        self._nodes.links |= {broker: self._links.seen_from(broker) for broker in brokers}
        self._nodes.start(brokers)

    def _apply_links(self) -> None:
        alive = {node.node_id: state for node, state in self._nodes.states() if state != "dead"}
        for node_id in alive:
            self._nodes.lines[node_id].tell(self._links.seen_from(node_id))
        for node_id, state in alive.items():
            if state == "running":  # One that is paused hears of it when it goes on.
                self._nodes.lines[node_id].wait_heard()


class NodesUnderTest(LocalCluster):
    """Processes as `klamm up` starts them, but for their line and their links."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.lines: dict[int, NodeLine] = {}
        self.links: dict[int, Mapping[Address, Link]] = {}
        """With which a node begins."""
        self._held: HeldPorts | None = None

    def launched(self, record: ClusterRecord, node: NodeRecord) -> "subprocess.Popen[bytes]":
        self._hang_up(node.node_id)
        line = self.lines[node.node_id] = NodeLine()
        # Who looks at the list of processes wants to know which node of what this is.
        command = [sys.executable, "-P", "-m", "klamm.testing.node", str(self.directory / f"node-{node.node_id}")]
        child = started(command, self.log_of(node.node_id), line.theirs.fileno())
        links = self.links.get(node.node_id, {})
        line.begin(record.cluster_id, properties_of(record, node, self.directory), links)
        return child

    def held_ports(self, host: str, ports: Sequence[int]) -> AbstractContextManager[HeldPorts]:
        self._held = HeldPorts(host, ports)
        return contextlib.nullcontext(self._held)

    def end(self) -> None:
        try:
            self.kill(node.node_id for node in self.record().nodes)
            self.states()
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Of lines and ports. A node that still runs ends."""
        for node_id in list(self.lines):
            self._hang_up(node_id)
        if self._held is not None:
            self._held.let_go()

    def _hang_up(self, node_id: int) -> None:
        line = self.lines.pop(node_id, None)
        if line is not None:
            line.close()
