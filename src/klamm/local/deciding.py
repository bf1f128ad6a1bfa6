"""Which nodes of a cluster on this machine run, whether they are enough to decide anything, and who is gone if not.

A node runs if its process does. One that seems dead may have been started where we do not see it, by hand or in another
container: where processes alone are no majority, it counts as well if somebody listens where it would. Only there this
is tried, and not of a cluster of which nothing runs at all: that one was stopped, and its ports are anybody's.

Whoever changes something, shows a status or reads what brokers say of the dead goes by this. The live view goes by
processes alone: it looks twice a second, and could not tell when somebody ends whom it does not see.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from klamm.local.processes import State
from klamm.local.record import ClusterRecord, NodeRecord
from klamm.local.topology import brokers_gone, has_majority

LISTENS_SECONDS = 1.0


class NodeState(NamedTuple):
    node: NodeRecord
    state: State


@dataclass(frozen=True, slots=True)
class WhoRuns:
    states: tuple[NodeState, ...]
    """Of the nodes' processes."""
    elsewhere: frozenset[int] = frozenset()
    """Those of the dead at whose places somebody listens."""

    @property
    def nodes(self) -> list[NodeRecord]:
        return [node for node, _ in self.states]

    @property
    def running(self) -> set[int]:
        return {node.node_id for node, state in self.states if state == "running"} | self.elsewhere

    @property
    def dead(self) -> list[int]:
        return [node.node_id for node, state in self.states if state == "dead" and node.node_id not in self.elsewhere]

    @property
    def paused(self) -> list[int]:
        return [node.node_id for node, state in self.states if state == "paused"]

    @property
    def is_anybody_there(self) -> bool:
        """Also those that stand still."""
        return any(state != "dead" for _, state in self.states)

    @property
    def can_decide(self) -> bool:
        return has_majority(self.nodes, self.running)

    @property
    def gone(self) -> list[int]:
        """Brokers that do not run, where nobody is left who could decide it."""
        return brokers_gone(self.nodes, self.running)


def who_runs(record: ClusterRecord, states: Iterable[NodeState]) -> WhoRuns:
    by_process = WhoRuns(tuple(states))
    if by_process.can_decide or not by_process.is_anybody_there:
        return by_process
    # Imported where it is needed: nodes are started without it.
    from klamm.local.asking import Address, takes_connections

    dead = [node for node, state in by_process.states if state == "dead"]
    heard = (node.node_id for node in dead if takes_connections(Address(record.host, node.port), LISTENS_SECONDS))
    return WhoRuns(by_process.states, frozenset(heard))
