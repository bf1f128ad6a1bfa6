"""The cluster behind `klamm_embedded`: nodes in the test's own process, with links that can be cut.

A node here is not a process, but all faults can be had: a killed node lets go of its sockets and files as the system
would, and a paused one is left out of the loop that all share. What is shared stays shared: one interpreter, and the
memory and descriptors of the test's own process.
"""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from klamm.facts import Fact, Tell
from klamm.local.embedded import Cluster
from klamm.local.processes import State
from klamm.local.record import ClusterRecord
from klamm.runtime.dialer import Dialing, MakeDialer
from klamm.runtime.loop import Loop
from klamm.runtime.observe import log_line
from klamm.testing.faults import Links
from klamm.testing.links import Address, Link, LinkedDialer
from klamm.testing.pausing import PausableLoop
from klamm.testing.shape import Shape
from klamm.testing.under_test import ClusterUnderTest

KEPT_LINES = 500


class EmbeddedCluster(ClusterUnderTest):
    """`klamm_embedded`"""

    def __init__(self, shape: Shape, directory: Path) -> None:
        self._directory = directory
        self._nodes = NodesInProcess(shape, directory)
        self._nodes.open()
        super().__init__(self._nodes.record)

    def states(self) -> dict[int, State]:
        return {broker: self._nodes.state(broker) for broker in self.brokers}

    def _said(self, broker: int) -> Iterator[str]:
        return iter(tuple(self._nodes.lines.get(broker, ())))  # They go on talking, in their thread.

    def _pause(self, broker: int) -> None:
        self._nodes.pause(broker)

    def _resume(self, broker: int) -> None:
        self._nodes.resume(broker)

    def close(self) -> None:
        """End everything at once; what the nodes have written goes with them."""
        self._nodes.abandon()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _kill(self, broker: int) -> None:
        self._nodes.kill(broker)

    def _stop(self, broker: int) -> None:
        self._nodes.resume(broker)  # One that is paused does not hear that it should end.
        self._nodes.stop(broker)

    def _start(self, brokers: Sequence[int]) -> None:
        self._nodes.links |= {broker: self._links.seen_from(broker) for broker in brokers}
        self._nodes.start(*brokers)

    def _apply_links(self) -> None:
        self._nodes.set_links(self._links)


class NodesInProcess(Cluster):
    """`klamm.Cluster`, which remembers what its nodes said and how they dial."""

    def __init__(self, shape: Shape, directory: Path) -> None:
        super().__init__(shape.brokers, shape.racks, directory=directory, settings=shape.settings)
        self.lines: dict[int, deque[str]] = {}
        self.links: dict[int, Mapping[Address, Link]] = {}
        """With which a node begins."""
        self._dialers: dict[int, LinkedDialer] = {}
        self._loops: dict[int, PausableLoop] = {}

    @property
    def record(self) -> ClusterRecord:
        return self._opened.record

    def state(self, node_id: int) -> State:
        if node_id not in self.running:
            return "dead"
        return "paused" if self._loops[node_id].is_paused else "running"

    def pause(self, node_id: int) -> None:
        self._ask(self._loops[node_id].pause)

    def resume(self, node_id: int) -> None:
        self._ask(self._loops[node_id].resume)

    def set_links(self, links: Links) -> None:
        """All nodes at once: they share a thread."""

        def set_all() -> None:
            for node_id in self.running:
                self._dialers[node_id].set_links(links.seen_from(node_id))

        self._ask(set_all)

    def loop_of(self, node_id: int, loop: Loop) -> Loop:
        self._loops[node_id] = PausableLoop(loop)
        return self._loops[node_id]

    def told_by(self, node_id: int) -> Tell:
        lines = self.lines.setdefault(node_id, deque(maxlen=KEPT_LINES))
        log = super().told_by(node_id)

        def tell(fact: Fact) -> None:
            if fact.level != "debug":
                lines.append(log_line(node_id, fact))
            log(fact)

        return tell

    def dialer_of(self, node_id: int) -> MakeDialer:
        def make(loop: Loop, node: Dialing) -> LinkedDialer:
            self._dialers[node_id] = LinkedDialer(loop, node, self.links.get(node_id, {}))
            return self._dialers[node_id]

        return make

    def _ask(self, act: Callable[[], None]) -> None:
        """In the nodes' thread; done when this returns."""

        def do(done: Callable[[None], None]) -> None:
            act()
            done(None)

        self._opened.thread.asked(do).result()
