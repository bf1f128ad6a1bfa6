"""A cluster on this machine in which too few of those who vote run: nothing can be decided, and it is said who is away.

Its processes tell at once what its brokers would tell after half a minute, if at all. What is there already can still
be read and mostly written: only changes are refused.
"""

import argparse
from collections.abc import Sequence

from klamm.cli.group_asking import Cluster, Refused, cluster_of
from klamm.cli.options import bootstrap_of
from klamm.cli.saying import counted
from klamm.local.asking import Address, takes_connections

LISTENS_SECONDS = 1.0


def undecided(directory: str | None, asked: str) -> str | None:
    """In words; None where a majority runs, where all are dead and `klamm up` is what helps, and where it is somebody
    else's cluster."""
    # Imported where it is needed: it costs the others a fiftieth of a second.
    from klamm.cli.tips import cluster_here, directory_option
    from klamm.local.topology import has_majority

    found = cluster_here(directory, asked)
    if found is None:
        return None
    cluster, record = found
    states = cluster.states()
    if all(state == "dead" for _, state in states):
        return None
    voters = [(node, state) for node, state in states if node.is_voter]
    dead = [
        node.node_id
        for node, state in voters
        # It may have been started where we do not see it.
        if state == "dead" and not takes_connections(Address(record.host, node.port), LISTENS_SECONDS)
    ]
    paused = [node.node_id for node, state in voters if state == "paused"]
    missing = {*dead, *paused}
    if has_majority(record.nodes, {node.node_id for node in record.nodes} - missing):
        return None
    noun = "node" if len(voters) == len(record.nodes) else "controller"
    at = directory_option(cluster.directory)
    ways = [
        f"`klamm node {verb} {' '.join(map(str, nodes))}{at}`"
        for verb, nodes in (("start", dead), ("resume", paused))
        if nodes
    ]
    without = "" if len(voters) == 1 else "no majority, "
    return (
        f"{_counts(dead, paused, len(voters), noun)}: {without}nothing can be decided; "
        f"{' and '.join(ways)} {'bring' if len(ways) > 1 else 'brings'} {'it' if len(missing) == 1 else 'them'} back"
    )


def refuse_if_undecided(options: argparse.Namespace) -> None:
    words = undecided(options.dir, bootstrap_of(options))
    if words is not None:
        raise Refused(words)


def changing(options: argparse.Namespace) -> Cluster:
    """The cluster of somebody who wants to change something."""
    refuse_if_undecided(options)
    return cluster_of(options)


def _counts(dead: Sequence[int], paused: Sequence[int], of: int, noun: str) -> str:
    """`2 of 3 nodes are dead`, `1 of 3 nodes is dead and 1 paused`"""
    told = [(nodes, state) for nodes, state in ((dead, "dead"), (paused, "paused")) if nodes]
    (nodes, state), *others = told
    if of == 1:
        return f"{noun} {nodes[0]} is {state}"
    first = f"{len(nodes)} of {counted(of, noun)} {'is' if len(nodes) == 1 else 'are'} {state}"
    return first + "".join(f" and {len(more)} {another}" for more, another in others)
