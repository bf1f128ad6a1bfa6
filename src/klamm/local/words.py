"""What nodes and partitions are called wherever a person reads of them, and the quorum that cannot decide."""

from collections.abc import Sequence

from klamm.escaping import one_line
from klamm.local.look import named
from klamm.local.processes import State
from klamm.local.record import NodeRecord
from klamm.local.topology import PlannedNode, voters_that_run
from klamm.local.view import PartitionSeen

MOST_NAMED = 4
BELOW_MIN_IN_SYNC = "below min.insync.replicas"


def called(node: NodeRecord) -> str:
    """`broker 1`; the witness is a node and no broker."""
    return f"broker {node.node_id}" if node.is_broker else f"witness {node.node_id}"


def state_word(state: State, is_stopped: bool) -> str:
    """`running`, `paused`, and of those that do not run: `stopped` if somebody asked for it, `dead` if not. What the
    cluster thinks of a broker, that it is fenced, is another thing."""
    return "stopped" if state == "dead" and is_stopped else state


def undecided(nodes: Sequence[PlannedNode], running: set[int]) -> str:
    """Where too few voters run: `1 of 3 voters runs: no majority, so nothing can be decided`"""
    voters = [node.node_id for node in nodes if node.is_voter]
    if len(voters) == 1:
        return f"node {voters[0]} alone has a vote and does not run, so nothing can be decided"
    return f"{voters_that_run(nodes, running)}: no majority, so nothing can be decided"


def without_acks_all(named: str, *, can_decide: bool) -> str:
    """Where what is written with acks=all fails. Without a majority nobody leaves the ISR: the leader does not refuse,
    it writes, and waits in vain for who is gone."""
    return f"{BELOW_MIN_IN_SYNC}: {named}; acks=all is {'refused' if can_decide else 'not acknowledged'} there"


def listed(partitions: Sequence[PartitionSeen], most: int = MOST_NAMED) -> str:
    """`invoice-0, invoice-6 and 50 internal ones`: people's own by name, those that the brokers keep only counted."""
    own = [one_line(str(named(each))) for each in partitions if not each.is_internal]
    more = len(own) - most
    parts = own if more <= 1 else [*own[:most], f"{more} more"]
    internal = len(partitions) - len(own)
    if internal:
        noun = "one" if own else "partition"
        parts = [*parts, f"{internal} internal {noun if internal == 1 else f'{noun}s'}"]
    return joined(parts)


def joined(parts: Sequence[str]) -> str:
    """`0, 1 and 2`"""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
